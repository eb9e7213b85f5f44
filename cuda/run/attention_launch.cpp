#if FUSELINE_HAS_CUDA

#include "cuda/run/attention_launch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "cuda/emit/attention_arguments.h"
#include "cuda/kernels/attention/decode_work.cuh"
#include "cuda/kernels/attention/gradient_work.cuh"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"

namespace fuseline::cuda {

namespace {

constexpr int kTileRows = 128;      // of Hopper's kernels: what stays
constexpr int kGradientBlock = 64;  // what moves past it
constexpr int kGenericTileRows = 64;
constexpr int kPrologueThreads = 256;

int small(std::int64_t n) { return static_cast<int>(n); }

// Keys and values: equally many rows of each sequence of their tensor, with all rows behind them.
struct SequenceRows {
  GpuMatrix matrix;
  std::int64_t step = 0;  // rows from one sequence to the next
};

SequenceRows rows_of(const LaunchContext& context, const Operand& operand, std::int64_t batch) {
  SequenceRows rows{context.tensors.all_rows(operand)};
  rows.step = operand.at.run > 0 ? operand.at.step : operand.rows / batch;
  rows.matrix.address += static_cast<std::uint64_t>(operand.at.begin * rows.matrix.row_bytes);
  rows.matrix.rows -= operand.at.begin;
  return rows;
}

class AttentionLaunches {
 public:
  AttentionLaunches(const LaunchContext& context, const Program& program)
      : context_(context),
        program_(program),
        m_(std::get<AttentionMainloop>(program.mainloop)),
        d_(small(m_.shape.head_width)),
        dv_(small(m_.shape.v_width())) {
    const AttentionShape& a = m_.shape;
    shape_.batch = small(a.batch);
    shape_.heads = small(a.heads);
    shape_.kv_heads = small(a.kv_heads);
    shape_.q_tokens = small(a.q_tokens);
    // Positions that an operand leaves out are seen by nobody: those that are left count from 0.
    shape_.kv_tokens = small(m_.k.rows / a.batch);
    shape_.causal = a.causal ? 1 : 0;
    shape_.window = small(a.window);
    shape_.scale = static_cast<float>(a.scale);
    shape_.softcap = static_cast<float>(a.softcap);
  }

  Launches run(const std::vector<AttentionKernelSource>& kernels) {
    // The prologue comes first: it makes the workspaces that attention reads, and that the launch
    // behind it keeps.
    Launches launches;
    bool operands_known = false;
    for (const AttentionKernelSource& kernel : kernels) {
      if (kernel.part == AttentionPart::wide_join && wide_.splits == 1) continue;
      KernelFunction code = load_function(context_, kernel.source, kernel.function);
      std::vector<DeviceBuffer> workspaces;
      if (kernel.part != AttentionPart::prologue && !operands_known) {
        set_operands();
        operands_known = true;
        for (auto& [value, buffer] : made_) workspaces.push_back(std::move(buffer));
      }
      LaunchShape shape;
      shape.shared_bytes = code.shared_bytes;
      KernelParameters parameters{arguments(kernel.part, code, shape, workspaces)};
      add_launch(launches, std::move(code.function), shape, std::move(parameters),
                 std::move(workspaces));
    }
    return launches;
  }

 private:
  std::vector<std::byte> arguments(AttentionPart part, const KernelFunction& code,
                                   LaunchShape& shape, std::vector<DeviceBuffer>& workspaces) {
    switch (part) {
      case AttentionPart::prologue:
        return prologue(shape);
      case AttentionPart::forward_sm90:
        return forward(shape, workspaces);
      case AttentionPart::forward_generic:
        return generic_forward(shape);
      case AttentionPart::decode:
        return decode(code, shape, workspaces);
      case AttentionPart::wide:
        return wide(code, shape, workspaces);
      case AttentionPart::wide_join:
        shape.grid[0] = static_cast<unsigned>(gpu::decode_tiles(shape_, wide_rows_) * wide_rows_);
        shape.block[0] = 128;
        return bytes_of(wide_);
      case AttentionPart::keys_sm90:
        return gradient(true, shape, workspaces);
      case AttentionPart::queries_sm90:
        return gradient(false, shape, workspaces);
      case AttentionPart::queries_generic:
        return generic_gradient(0, shape);
      case AttentionPart::keys_generic:
        return generic_gradient(m_.gradient->dk, shape);
      case AttentionPart::values_generic:
        return generic_gradient(m_.gradient->dv, shape);
    }
    FUSELINE_ASSERT(false, "unknown part of attention");
  }

  // ---- operands ----

  [[nodiscard]] GpuMatrix matrix(const Operand& o) const { return context_.tensors.matrix(o); }
  // The prologue's value in its workspace, rows side by side.
  [[nodiscard]] GpuMatrix made(Value value, const Operand& instead) const {
    GpuMatrix m;
    m.address = made_.at(value).address();
    m.rows = instead.rows;
    m.cols = instead.cols;
    m.type = context_.plan.graph.tensor(instead.tensor).dtype;
    m.row_bytes = m.cols * size_of(m.type);
    return m;
  }

  void set_operands() {
    q_ = m_.q_value >= 0 ? made(m_.q_value, m_.q) : matrix(m_.q);
    const auto keys = [&](const Operand& o, Value value) {
      if (value < 0) return rows_of(context_, o, m_.shape.batch);
      return SequenceRows{made(value, o), o.rows / m_.shape.batch};
    };
    const SequenceRows k = keys(m_.k, m_.k_value);
    const SequenceRows v = keys(m_.v, m_.v_value);
    FUSELINE_ASSERT(k.step == v.step, "keys and values of a sequence lie alike");
    shape_.kv_rows = small(k.step);
    k_ = k.matrix;
    v_ = v.matrix;
    for (const GpuMatrix& m : {q_, k_, v_})
      FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                      "rows start at multiples of 16 bytes");
  }
  [[nodiscard]] GpuMatrix result(Value value) const {
    const GpuMatrix m = matrix(stored_as(context_.plan.graph, program_, value));
    FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                    "rows start at multiples of 16 bytes");
    return m;
  }
  // Address 0 where the program has none.
  [[nodiscard]] std::pair<Address, std::int32_t> log_sum_exp() const {
    if (m_.log_sum_exp < 0) return {0, 1};
    // Read and written number by number: a vector's rows start anywhere.
    const GpuMatrix m = matrix(stored_as(context_.plan.graph, program_, m_.log_sum_exp));
    return {m.address, leading(m)};
  }
  // Of the keys that the operand has.
  [[nodiscard]] ScoreBiasArguments bias() const {
    if (!m_.bias) return {0, 0};
    const GpuMatrix m = matrix(*m_.bias);
    FUSELINE_ASSERT(m.cols >= shape_.kv_tokens && m.rows == m_.shape.heads * m_.shape.q_tokens,
                    "something for every query of a head and every key");
    return {m.address, leading(m)};
  }
  [[nodiscard]] TensorMap map(const GpuMatrix& m, int rows) const {
    return map_of(context_.device, m, rows, 64, 128);
  }

  // ---- workspaces ----

  // Counters, 0 before the first launch and after every one.
  Address zeroed(std::int64_t words, std::vector<DeviceBuffer>& workspaces) const {
    workspaces.push_back(context_.device.allocate(Bytes(4 * words)));
    workspaces.back().fill(0);
    return workspaces.back().address();
  }
  Address scratch(std::int64_t bytes, std::vector<DeviceBuffer>& workspaces) const {
    workspaces.push_back(context_.device.allocate(Bytes(bytes)));
    return workspaces.back().address();
  }
  void persistent(LaunchShape& shape, const gpu::AttentionOrder& order) const {
    shape.grid[0] =
        static_cast<unsigned>(std::min(order.items(), context_.device.info().multiprocessors));
    shape.block[0] = 384;
  }

  // ---- the kernels ----

  std::vector<std::byte> prologue(LaunchShape& shape) {
    const Graph& graph = context_.plan.graph;
    AttentionPrologueArguments p{};
    p.batch = shape_.batch;
    p.tokens = shape_.q_tokens;
    p.period = 1;
    std::int64_t heads = 0;
    for (const AttentionMove& move : prologue_moves(graph, program_)) {
      const GpuMatrix from = matrix(move.from);
      AttentionRowsArguments& part = p.parts[p.count++];
      part.from = from.address;
      part.from_ld = leading(from);
      part.heads = small(from.cols / d_);
      part.to_rows = shape_.q_tokens;
      heads += part.heads;
      GpuMatrix to;
      if (move.stored) {
        const SequenceRows rows = rows_of(context_, move.to, m_.shape.batch);
        to = rows.matrix;
        part.to_rows = small(rows.step);
      } else {
        made_.emplace(move.value, context_.device.allocate(
                                      Bytes(move.from.rows * from.cols * size_of(from.type))));
        to = made(move.value, move.from);
      }
      part.to = to.address;
      part.to_ld = leading(to);
      if (!move.rotated) continue;
      part.pairs = move.distance == 1 ? 1 : 2;
      const GpuMatrix cos = matrix(move.cos), sin = matrix(move.sin);
      p.cos = cos.address;
      p.sin = sin.address;
      part.distance = small(move.distance);
      part.rotated = small(cos.cols);
      p.table_ld = leading(cos);
      p.period = small(cos.rows);
    }
    const std::int64_t threads =
        static_cast<std::int64_t>(shape_.batch) * shape_.q_tokens * heads * (d_ / 16);
    shape.grid[0] = static_cast<unsigned>((threads + kPrologueThreads - 1) / kPrologueThreads);
    shape.block[0] = kPrologueThreads;
    return bytes_of(p);
  }

  std::vector<std::byte> forward(LaunchShape& shape, std::vector<DeviceBuffer>& workspaces) const {
    const GpuMatrix y = result(0);
    AttentionForwardArguments a{};
    a.q = map(q_, kTileRows);
    const int block_keys = gpu::hopper_block_keys(d_, dv_);
    a.k = map(k_, block_keys);
    a.v = map(v_, block_keys);
    if (m_.bias) a.bias = map(matrix(*m_.bias), kTileRows);
    a.y = y.address;
    a.y_ld = leading(y);
    std::tie(a.log_sum_exp, a.log_sum_exp_ld) = log_sum_exp();
    a.shape = shape_;
    a.order = gpu::attention_order(shape_, kTileRows, d_, context_.device.info().multiprocessors);
    a.tickets = zeroed(2, workspaces);
    persistent(shape, a.order);
    return bytes_of(a);
  }

  [[nodiscard]] AttentionOperandArguments operands() const {
    AttentionOperandArguments in{};
    in.q = q_.address;
    in.k = k_.address;
    in.v = v_.address;
    in.q_ld = leading(q_);
    in.k_ld = leading(k_);
    in.v_ld = leading(v_);
    if (m_.gradient) {
      const GpuMatrix dy = matrix(m_.gradient->dy);
      in.dy = dy.address;
      in.dy_ld = leading(dy);
    }
    return in;
  }

  std::vector<std::byte> generic_forward(LaunchShape& shape) const {
    const GpuMatrix y = result(0);
    GenericForwardArguments a{};
    a.in = operands();
    a.y = y.address;
    a.y_ld = leading(y);
    std::tie(a.log_sum_exp, a.log_sum_exp_ld) = log_sum_exp();
    a.shape = shape_;
    a.bias = bias();
    a.order =
        gpu::attention_order(shape_, kGenericTileRows, d_, context_.device.info().multiprocessors);
    shape.grid[0] = static_cast<unsigned>(a.order.items());
    shape.block[0] = 128;
    return bytes_of(a);
  }

  std::vector<std::byte> decode(const KernelFunction& code, LaunchShape& shape,
                                std::vector<DeviceBuffer>& workspaces) const {
    const GpuMatrix y = result(0);
    const AttentionOperandArguments in = operands();
    AttentionDecodeArguments a{};
    a.q = in.q;
    a.k = in.k;
    a.v = in.v;
    a.q_ld = in.q_ld;
    a.k_ld = in.k_ld;
    a.v_ld = in.v_ld;
    a.y = y.address;
    a.y_ld = leading(y);
    std::tie(a.log_sum_exp, a.log_sum_exp_ld) = log_sum_exp();
    a.shape = shape_;
    a.bias = bias();
    a.scale_ld = 1;
    const auto scales = [&](const std::optional<Operand>& scale, Address& address) {
      if (!scale) return;
      const SequenceRows rows = rows_of(context_, *scale, m_.shape.batch);
      FUSELINE_ASSERT(rows.step == shape_.kv_rows, "scales lie as their keys do");
      address = rows.matrix.address;
      a.scale_ld = leading(rows.matrix);
    };
    scales(m_.k_scale, a.k_scale);
    scales(m_.v_scale, a.v_scale);
    shape.block[0] = 128;
    const int at_once = context_.device.blocks_at_once(code.function, 128, shape.shared_bytes) *
                        context_.device.info().multiprocessors;
    a.splits = gpu::decode_splits(shape_, at_once);
    if (a.splits > 1) {
      a.partial = scratch(4 * gpu::decode_partial_floats(shape_, a.splits, dv_), workspaces);
      a.arrivals = zeroed(gpu::decode_tiles(shape_), workspaces);
    }
    shape.grid[0] = static_cast<unsigned>(gpu::decode_tiles(shape_) * a.splits);
    return bytes_of(a);
  }

  std::vector<std::byte> wide(const KernelFunction& code, LaunchShape& shape,
                              std::vector<DeviceBuffer>& workspaces) {
    wide_rows_ = wide_rows(m_.shape, context_.store.target());
    const GpuMatrix y = result(0);
    const AttentionOperandArguments in = operands();
    wide_.q = in.q;
    wide_.k = in.k;
    wide_.q_ld = in.q_ld;
    wide_.k_ld = in.k_ld;
    wide_.y = y.address;
    wide_.y_ld = leading(y);
    std::tie(wide_.log_sum_exp, wide_.log_sum_exp_ld) = log_sum_exp();
    wide_.shape = shape_;
    shape.block[0] = wide_rows_ == 64 ? 256 : 128;
    const int at_once = context_.device.blocks_at_once(
                            code.function, static_cast<int>(shape.block[0]), shape.shared_bytes) *
                        context_.device.info().multiprocessors;
    wide_.splits = gpu::decode_splits(shape_, at_once, wide_rows_);
    if (wide_.splits > 1)
      wide_.partial = scratch(4 * gpu::decode_partial_floats(shape_, wide_.splits, dv_, wide_rows_),
                              workspaces);
    shape.grid[0] = static_cast<unsigned>(gpu::decode_tiles(shape_, wide_rows_) * wide_.splits);
    return bytes_of(wide_);
  }

  std::vector<std::byte> gradient(bool keys_stay, LaunchShape& shape,
                                  std::vector<DeviceBuffer>& workspaces) const {
    const AttentionGradient& g = *m_.gradient;
    const int query_box = keys_stay ? kGradientBlock : kTileRows;
    const int key_box = keys_stay ? kTileRows : kGradientBlock;
    const TensorMap queries[2] = {map(q_, query_box), map(matrix(g.dy), query_box)};
    const TensorMap keys[2] = {map(k_, key_box), map(v_, key_box)};
    AttentionGradientArguments a{};
    a.stay_1 = keys_stay ? keys[0] : queries[0];
    a.stay_2 = keys_stay ? keys[1] : queries[1];
    a.move_1 = keys_stay ? queries[0] : keys[0];
    a.move_2 = keys_stay ? queries[1] : keys[1];
    const GpuMatrix sums = matrix(g.log_sum_exp), delta = matrix(g.delta);
    a.log_sum_exp = sums.address;
    a.delta = delta.address;
    a.log_sum_exp_ld = leading(sums);
    a.delta_ld = leading(delta);
    const GpuMatrix first = result(keys_stay ? g.dk : 0);
    a.out_1 = first.address;
    a.out_1_ld = leading(first);
    if (keys_stay) {
      const GpuMatrix second = result(g.dv);
      a.out_2 = second.address;
      a.out_2_ld = leading(second);
    }
    a.shape = shape_;
    a.per_query_head = g.per_query_head ? 1 : 0;
    a.order = gpu::attention_gradient_order(shape_, kTileRows, d_, keys_stay, g.per_query_head);
    a.tickets = zeroed(2, workspaces);
    persistent(shape, a.order);
    return bytes_of(a);
  }

  std::vector<std::byte> generic_gradient(Value of, LaunchShape& shape) const {
    const AttentionGradient& g = *m_.gradient;
    GenericGradientArguments a{};
    a.in = operands();
    const GpuMatrix sums = matrix(g.log_sum_exp), delta = matrix(g.delta);
    a.log_sum_exp = sums.address;
    a.delta = delta.address;
    a.log_sum_exp_ld = leading(sums);
    a.delta_ld = leading(delta);
    const GpuMatrix out = result(of);
    a.out = out.address;
    a.out_ld = leading(out);
    a.shape = shape_;
    a.bias = bias();
    a.per_query_head = g.per_query_head ? 1 : 0;
    a.order =
        gpu::attention_gradient_order(shape_, kGenericTileRows, d_, of != 0, g.per_query_head);
    shape.grid[0] = static_cast<unsigned>(a.order.items());
    shape.block[0] = 128;
    return bytes_of(a);
  }

  const LaunchContext& context_;
  const Program& program_;
  const AttentionMainloop& m_;
  int d_, dv_;  // widths of a head's key and value
  int wide_rows_ = 0;
  AttentionWideArguments wide_{};
  gpu::AttentionShape shape_{};
  GpuMatrix q_, k_, v_;
  std::map<Value, DeviceBuffer> made_;  // by the prologue
};

}  // namespace

Launches prepare_attention(const LaunchContext& context,
                           const std::vector<AttentionKernelSource>& kernels,
                           const Program& program) {
  return AttentionLaunches(context, program).run(kernels);
}

}  // namespace fuseline::cuda

#endif
