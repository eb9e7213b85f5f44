#if FUSELINE_HAS_CUDA

#include "cuda/run/kernel_check.h"

#include <cmath>
#include <cstring>
#include <map>

#include "cuda/run/attention_launch.h"
#include "cuda/run/gemm_launch.h"
#include "model/primitives/basics.h"
#include "sim/kernels/epilogue_needs.h"

namespace fuseline::cuda {

namespace {

// Title of sources that no policy's name tells apart: their code is shared.
constexpr const char* kTitle = "A kernel that is checked against the executor.";

// Of a row the sums of every `each`-th number, from the first, second, ... on.
std::vector<float> added_up(const std::vector<float>& row, std::int64_t each) {
  std::vector<float> sums(static_cast<std::size_t>(each));
  for (std::size_t i = 0; i < row.size(); ++i) sums[i % sums.size()] += row[i];
  return sums;
}

// `each`: the operand has the sums of so many numbers in parts, whose rows each kernel chooses, so
// that only all of them together are the same; 0: it is compared number by number.
StoredTensorError compare(const std::string& name, const Operand& part, std::int64_t each,
                          const executor::Storage& got, const executor::Storage& want) {
  StoredTensorError error{name};
  double difference = 0;
  double size = 0;
  std::vector<float> a, b;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const std::int64_t r = part.tensor_row(i);
    a.resize(static_cast<std::size_t>(part.cols));
    b.resize(a.size());
    got.read(r, part.col_begin, part.cols, a.data());
    want.read(r, part.col_begin, part.cols, b.data());
    if (each > 0) {
      a = added_up(a, each);
      b = added_up(b, each);
    }
    for (std::size_t c = 0; c < a.size(); ++c) {
      error.finite = error.finite && std::isfinite(a[c]);
      const double d = static_cast<double>(a[c]) - static_cast<double>(b[c]);
      difference += d * d;
      size += static_cast<double>(b[c]) * static_cast<double>(b[c]);
    }
  }
  error.relative_l2 = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
  if (!(error.relative_l2 <= 1.0)) error.relative_l2 = 1.0;
  return error;
}

executor::Storage copy_of(const executor::Storage& values) {
  executor::Storage copy(values.type(), values.rows(), values.cols());
  std::memcpy(copy.at(0, 0), values.at(0, 0), static_cast<std::size_t>(values.bytes().value()));
  return copy;
}

// How many numbers a column has the sums of in parts that may be of any rows; 0: in none.
std::int64_t sums_of_any_rows(const Graph& graph, const Program& program, const Operand& operand) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr || !epilogue_needs(program, graph).sums_of_any_rows) return 0;
  for (const Primitive& p : program.body)
    for (const Access& a : p.accesses())
      if (a.reach == Reach::partials && a.along == Axis::cols && a.operand == operand)
        return operand.cols / ceil_div(gemm->M, partial_tile);
  return 0;
}

// All elements of a program's tensors as before its run: results are not a number yet.
void upload_operands(const Program& program, GpuTensors& tensors, const executor::Memory& memory) {
  std::map<TensorId, executor::Storage> values;
  for (const Operand& o : loads(program))
    if (!values.contains(o.tensor)) values.emplace(o.tensor, copy_of(memory.at(o.tensor)));
  for (const Operand& o : stores(program)) {
    const auto loaded = values.find(o.tensor);
    if (loaded == values.end()) {
      tensors.poison(o.tensor);
      continue;
    }
    executor::Storage& storage = loaded->second;
    const auto bytes = static_cast<std::size_t>(o.cols * size_of(storage.type()));
    for (std::int64_t r = 0; r < o.rows; ++r)
      std::memset(storage.at(o.tensor_row(r), o.col_begin), 0xff, bytes);
  }
  for (const auto& [tensor, storage] : values) tensors.upload(tensor, storage);
}

}  // namespace

std::vector<StoredTensorError> check_launches(const LaunchContext& context, const Program& program,
                                              const Launches& launches, GpuTensors& tensors,
                                              const executor::Memory& memory) {
  upload_operands(program, tensors, memory);
  Stream stream = context.device.stream();
  // Twice: the second finds the counters that the first left.
  for (int i = 0; i < 2; ++i)
    for (const auto& launch : launches) launch->launch(stream);
  stream.synchronize("running " + program.name);

  std::vector<StoredTensorError> errors;
  for (const Operand& o : stores(program))
    errors.push_back(compare(context.plan.graph.tensor(o.tensor).name, o,
                             sums_of_any_rows(context.plan.graph, program, o),
                             tensors.download(o.tensor), memory.at(o.tensor)));
  return errors;
}

std::vector<StoredTensorError> check_gemm(const LaunchContext& context, const Program& program,
                                          const GemmTile& tile, GpuTensors& tensors,
                                          const executor::Memory& memory) {
  const GemmKernelSource source =
      gemm_kernel_source(context.plan.graph, program, tile, context.store.target(), kTitle);
  return check_launches(context, program, prepare_gemm(context, source, program), tensors, memory);
}

std::vector<StoredTensorError> check_attention(const LaunchContext& context, const Program& program,
                                               GpuTensors& tensors,
                                               const executor::Memory& memory) {
  const std::vector<AttentionKernelSource> sources =
      attention_sources(context.plan.graph, program, context.store.target(), kTitle);
  return check_launches(context, program, prepare_attention(context, sources, program), tensors,
                        memory);
}

}  // namespace fuseline::cuda

#endif
