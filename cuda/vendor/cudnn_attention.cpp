#include "cuda/vendor/cudnn_attention.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

#if FUSELINE_HAS_CUDA && FUSELINE_HAS_CUDNN
#include "cuda/vendor/cudnn_graph.h"
#endif

namespace fuseline::cuda {

#if FUSELINE_HAS_CUDA && FUSELINE_HAS_CUDNN

struct Cudnn::State {
  explicit State(const Device&) { calls.check(calls.create(&handle), "starting"); }
  ~State() { (void)calls.destroy(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  CudnnCalls calls;
  cudnnHandle_t handle = nullptr;
};

Cudnn::Cudnn(const Device& device) : state_(std::make_unique<State>(device)) {}

std::string Cudnn::version() const {
  const std::size_t v = state_->calls.version();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

namespace {

// Numbers of the tensors in memory, in the order in which describe() makes them.
struct Tensors {
  std::int64_t q = 0, k = 0, v = 0, out = 0, log_sum_exp = 0;
  std::int64_t scale = 0, hidden = -1;
};

// [B·rows, heads·d], of which `transposed` swaps the last two dimensions.
std::int64_t operand(CudnnGraph& graph, cudnnDataType_t type, const GpuMatrix& m,
                     std::int64_t batch, std::int64_t heads, std::int64_t width, bool transposed) {
  const std::int64_t rows = m.rows / batch;
  const std::int64_t ld = m.row_bytes / size_of(m.type);
  if (transposed)
    return graph.tensor(type, {batch, heads, width, rows}, {rows * ld, width, 1, ld},
                        CudnnHome::device);
  return graph.tensor(type, {batch, heads, rows, width}, {rows * ld, width, ld, 1},
                      CudnnHome::device);
}

// softmax(scale · Q Kᵀ + mask) V in the steps in which cuDNN knows fused attention: maximum,
// difference, exponential, sum, their logarithm, quotient (cuDNN's documentation, fused attention).
Tensors describe(CudnnGraph& graph, const AttentionMainloop& m, const GpuMatrix& q,
                 const GpuMatrix& k, const GpuMatrix& v, const GpuMatrix& out,
                 std::int64_t log_sum_exp_stride, bool masked) {
  const AttentionShape& s = m.shape;
  const cudnnDataType_t type = q.type == Dtype::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
  const CudnnShape scores = {s.batch, s.heads, s.q_tokens, s.kv_tokens};
  const CudnnShape rows = {s.batch, s.heads, s.q_tokens, 1};
  const CudnnShape one = {1, 1, 1, 1};
  const auto score = [&] { return graph.between(CUDNN_DATA_FLOAT, scores); };
  const auto row = [&] { return graph.between(CUDNN_DATA_FLOAT, rows); };
  Tensors t;
  t.q = operand(graph, type, q, s.batch, s.heads, s.head_width, false);
  t.k = operand(graph, type, k, s.batch, s.kv_heads, s.head_width, true);
  t.v = operand(graph, type, v, s.batch, s.kv_heads, s.head_width, false);
  t.out = operand(graph, type, out, s.batch, s.heads, s.head_width, false);
  t.log_sum_exp = graph.tensor(CUDNN_DATA_FLOAT, rows,
                               {s.heads * s.q_tokens * log_sum_exp_stride,
                                s.q_tokens * log_sum_exp_stride, log_sum_exp_stride, 1},
                               CudnnHome::device);
  t.scale = graph.tensor(CUDNN_DATA_FLOAT, one, one, CudnnHome::host);

  const std::int64_t product = score();
  graph.multiply(t.q, t.k, product);
  std::int64_t x = score();
  graph.map({.mode = CUDNN_POINTWISE_MUL, .x = product, .b = t.scale, .y = x});
  if (masked) {
    t.hidden = graph.tensor(CUDNN_DATA_FLOAT, one, one, CudnnHome::host);
    const std::int64_t query = graph.between(CUDNN_DATA_INT32, scores);
    const std::int64_t key = graph.between(CUDNN_DATA_INT32, scores);
    const std::int64_t seen = graph.between(CUDNN_DATA_BOOLEAN, scores);
    const std::int64_t chosen = score();
    graph.map({.mode = CUDNN_POINTWISE_GEN_INDEX,
               .maths = CUDNN_DATA_INT32,
               .x = x,
               .y = query,
               .axis = 2});
    graph.map({.mode = CUDNN_POINTWISE_GEN_INDEX,
               .maths = CUDNN_DATA_INT32,
               .x = x,
               .y = key,
               .axis = 3});
    graph.map({.mode = CUDNN_POINTWISE_CMP_GE,
               .maths = CUDNN_DATA_BOOLEAN,
               .x = query,
               .b = key,
               .y = seen});
    graph.map(
        {.mode = CUDNN_POINTWISE_BINARY_SELECT, .x = x, .b = t.hidden, .t = seen, .y = chosen});
    x = chosen;
  }
  const std::int64_t most = row();
  const std::int64_t difference = score();
  const std::int64_t exponential = score();
  const std::int64_t sum = row();
  const std::int64_t log_sum = row();
  const std::int64_t probabilities = graph.between(type, scores);
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, x, most);
  graph.map({.mode = CUDNN_POINTWISE_SUB, .x = x, .b = most, .y = difference});
  graph.map({.mode = CUDNN_POINTWISE_EXP, .x = difference, .y = exponential});
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, sum);
  graph.map({.mode = CUDNN_POINTWISE_LOG, .x = sum, .y = log_sum});
  graph.map({.mode = CUDNN_POINTWISE_ADD, .x = most, .b = log_sum, .y = t.log_sum_exp});
  graph.map({.mode = CUDNN_POINTWISE_DIV, .x = exponential, .b = sum, .y = probabilities});
  graph.multiply(probabilities, t.v, t.out);
  return t;
}

class AttentionLaunch final : public Launch {
 public:
  AttentionLaunch(Cudnn::State& library, CudnnDescriptor plan, const Tensors& tensors,
                  std::array<std::uint64_t, 5> addresses, double scale,
                  std::vector<DeviceBuffer> memory)
      : Launch("cudnn attention"),
        library_(library),
        plan_(std::move(plan)),
        pack_(library.calls, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR),
        scale_(static_cast<float>(scale)),
        memory_(std::move(memory)) {
    std::vector<std::int64_t> numbers = {tensors.q, tensors.k, tensors.v, tensors.out,
                                         tensors.log_sum_exp};
    std::vector<void*> pointers;
    pointers.reserve(addresses.size() + 2);
    for (const std::uint64_t address : addresses)
      pointers.push_back(reinterpret_cast<void*>(address));
    numbers.push_back(tensors.scale);
    pointers.push_back(&scale_);
    if (tensors.hidden >= 0) {
      numbers.push_back(tensors.hidden);
      pointers.push_back(&hidden_);
    }
    pack_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::ssize(numbers),
              numbers.data());
    pack_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(pointers),
              pointers.data());
    pack_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
              reinterpret_cast<void*>(memory_.front().address()));
    pack_.finalize("the operands of attention");
  }

  void launch(Stream& stream) override {
    const CudnnCalls& calls = library_.calls;
    calls.check(calls.set_stream(library_.handle, static_cast<cudaStream_t>(stream.handle())),
                "choosing the stream");
    calls.check(calls.execute(library_.handle, plan_.handle(), pack_.handle()), "attention");
  }

 private:
  Cudnn::State& library_;
  CudnnDescriptor plan_;
  CudnnDescriptor pack_;
  float scale_;
  float hidden_ = std::numeric_limits<float>::lowest();
  std::vector<DeviceBuffer> memory_;  // the workspace, then a log-sum-exp that nobody wants
};

}  // namespace

Launches prepare_library_attention(const LaunchContext& context, Cudnn& library,
                                   const Program& program) {
  const auto form = vendor_attention(context.plan.graph, program);
  if (!form) return {};
  const auto& m = std::get<AttentionMainloop>(program.mainloop);
  const AttentionShape& s = m.shape;
  const GpuMatrix q = context.tensors.matrix(m.q);
  const GpuMatrix k = context.tensors.matrix(m.k);
  const GpuMatrix v = context.tensors.matrix(m.v);
  const GpuMatrix out = context.tensors.matrix(form->out);
  std::uint64_t log_sum_exp = 0;
  std::int64_t log_sum_exp_stride = 1;
  if (form->log_sum_exp) {
    const GpuMatrix lse = context.tensors.matrix(*form->log_sum_exp);
    log_sum_exp = lse.address;
    log_sum_exp_stride = lse.row_bytes / size_of(lse.type);
  }

  Cudnn::State& state = library.state();
  CudnnGraph graph(state.calls, state.handle);
  const Tensors tensors = describe(graph, m, q, k, v, out, log_sum_exp_stride, form->masked);
  std::optional<CudnnDescriptor> plan = graph.plan();
  if (!plan) return {};
  std::int64_t workspace = 0;
  std::int64_t count = 0;
  state.calls.check(
      state.calls.get_attribute(plan->handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                CUDNN_TYPE_INT64, 1, &count, &workspace),
      "asking for the workspace");
  std::vector<DeviceBuffer> memory;
  memory.push_back(context.device.allocate(Bytes(workspace)));
  if (!form->log_sum_exp) {
    memory.push_back(
        context.device.allocate(checked_product<Bytes>(s.batch, s.heads, s.q_tokens, 4)));
    log_sum_exp = memory.back().address();
  }
  Launches launches;
  launches.push_back(std::make_unique<AttentionLaunch>(
      state, std::move(*plan), tensors,
      std::array<std::uint64_t, 5>{q.address, k.address, v.address, out.address, log_sum_exp},
      s.scale, std::move(memory)));
  return launches;
}

#else

struct Cudnn::State {};
Cudnn::Cudnn(const Device&) {
  throw MissingError(
      "no cuDNN: this fuseline was built without its headers, so the vendor's attention cannot "
      "run");
}
std::string Cudnn::version() const { return {}; }
Launches prepare_library_attention(const LaunchContext&, Cudnn&, const Program&) { return {}; }

#endif

Cudnn::~Cudnn() = default;
Cudnn::Cudnn(Cudnn&&) noexcept = default;
Cudnn& Cudnn::operator=(Cudnn&&) noexcept = default;

}  // namespace fuseline::cuda
