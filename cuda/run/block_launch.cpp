#if FUSELINE_HAS_CUDA

#include "cuda/run/block_launch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/kernels/block/instruction.cuh"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"
#include "cuda/run/stream_arguments.h"
#include "sim/instructions/events.h"

namespace fuseline::cuda {

namespace {

constexpr double kLog2OfE = 1.4426950408889634;
constexpr int kTimes = 3;          // of an instruction
constexpr int kPredictedRing = 6;  // stages of a kernel for one sequence

static_assert(static_cast<int>(gpu::BlockStep::finish_stats) ==
              static_cast<int>(Step::finish_stats));

// The most rows that an instruction of this product has.
std::int64_t most_rows(const BlockInstructions& all, Step step) {
  std::int64_t most = 1;
  for (const auto& sm : all.sms)
    for (const Instruction& i : sm)
      if (i.step == step) most = std::max(most, i.count);
  return most;
}

gpu::BlockInstruction device_form(const BlockInstructions& all, const Instruction& i,
                                  std::int64_t box_rows) {
  gpu::BlockInstruction d{};
  d.step = static_cast<int>(i.step);
  d.begin = narrow(i.begin);
  d.count = narrow(i.count);
  d.head = narrow(i.sequence * all.block.kv_heads + i.kv_head);
  d.slot = narrow(i.slot);
  d.slots = narrow(i.slots);
  d.operand_first = i.operand.first;
  d.operand_count = i.operand.count;
  d.operand_columns = narrow(i.operand_columns);
  std::ranges::copy(i.waits, d.waits);
  std::ranges::copy(i.adds, d.adds);
  d.box_rows = narrow(box_rows);
  return d;
}

gpu::BlockMap device_form(const TensorMap& made) {
  gpu::BlockMap map{};
  static_assert(sizeof map == sizeof made);
  std::memcpy(&map, &made, sizeof map);
  return map;
}

class Preparing {
 public:
  Preparing(const LaunchContext& context, const BlockInstructions& all)
      : context_(context), all_(all) {}

  gpu::BlockArgs arguments() {
    const DecodeBlock& b = all_.block;
    const std::int64_t sums = all_.first_sum.back() * b.batch;
    gpu::BlockArgs a{};
    a.instructions = instructions();
    a.counts = uploaded(of_sms([](const auto& sm) { return narrow(count(sm)); }));
    a.goals = uploaded(goals());
    a.counter_count = narrow(count(all_.counters));
    a.counters = uploaded(two_sets());
    a.begun = zeroed(4);
    a.kv_heads = narrow(b.kv_heads);
    a.context = narrow(b.context);
    a.model = narrow(b.model);
    a.inner = narrow(b.inner);
    a.scale = static_cast<float>(b.scale * kLog2OfE);
    a.eps1 = static_cast<float>(b.eps1);
    a.eps2 = static_cast<float>(b.eps2);
    a.sums_groups = narrow(count(all_.first_sum) - 1);
    a.sums = narrow(all_.first_sum.back());
    a.first_sum = uploaded(narrowed(all_.first_sum));
    a.h_sums = zeroed(4 * sums);
    a.y_sums = zeroed(4 * sums);
    const std::int64_t slots = std::max<std::int64_t>(all_.attention_slots, 1);
    a.partial = zeroed(4 * slots * b.group() * b.width);
    a.partial_weight = zeroed(8 * slots * b.group());
    a.cos = matrix(b.cos).data;
    a.sin = matrix(b.sin).data;
    a.x = matrix(b.x);
    a.q = matrix(b.q);
    a.k = matrix(b.k);
    a.v = matrix(b.v);
    a.attn = matrix(b.attn);
    a.h = matrix(b.h);
    a.act = matrix(b.act);
    a.y = matrix(b.y);
    a.w_qkv = weight_map(b.w_qkv, Step::qkv);
    a.w_o = weight_map(b.w_o, Step::out);
    a.w_gate_up = weight_map(b.w_gate_up, Step::gate_up);
    a.w_down = weight_map(b.w_down, Step::down);
    a.old_k = map(b.k, gpu::block_box_keys);
    a.old_v = map(b.v, gpu::block_box_keys);
    a.x_slice = slice_map(b.x, b.batch);
    a.attn_slice = slice_map(b.attn, b.batch);
    a.h_slice = slice_map(b.h, b.batch);
    a.act_slice = slice_map(b.act, b.batch);
    a.x_stats = matrix(b.x_stats);
    a.h_stats = matrix(b.h_stats);
    a.y_stats = matrix(b.y_stats);
    a.r1 = matrix(b.r_norm1);
    a.r2 = matrix(b.r_norm2);
    return a;
  }

  [[nodiscard]] std::vector<DeviceBuffer> take_workspaces() { return std::move(workspaces_); }

 private:
  template <class T>
  static std::int64_t count(const std::vector<T>& list) {
    return static_cast<std::int64_t>(list.size());
  }
  static std::vector<std::int32_t> narrowed(const std::vector<std::int64_t>& numbers) {
    std::vector<std::int32_t> small;
    for (const std::int64_t n : numbers) small.push_back(narrow(n));
    return small;
  }
  template <class F>
  std::vector<std::int32_t> of_sms(const F& f) const {
    std::vector<std::int32_t> numbers;
    for (const auto& sm : all_.sms) numbers.push_back(f(sm));
    return numbers;
  }
  [[nodiscard]] std::vector<std::int32_t> goals() const {
    std::vector<std::int32_t> of_counters;
    for (const BlockCounter& c : all_.counters) of_counters.push_back(narrow(c.goal));
    return of_counters;
  }
  // Of counters, as they are before the first launch and before the second.
  [[nodiscard]] std::vector<std::int32_t> two_sets() const {
    std::vector<std::int32_t> begin;
    for (int set = 0; set < 2; ++set)
      for (const std::int32_t goal : goals()) begin.push_back(-goal);
    return begin;
  }

  std::uint64_t instructions() {
    std::vector<gpu::BlockInstruction> list(all_.sms.size() * gpu::block_most_instructions);
    for (std::size_t sm = 0; sm < all_.sms.size(); ++sm) {
      if (count(all_.sms[sm]) > gpu::block_most_instructions)
        throw MissingError(fmt::format(
            "this block gives an SM {} instructions, the kernel of policy {} has room for {}",
            all_.sms[sm].size(), context_.plan.policy, gpu::block_most_instructions));
      std::ranges::transform(
          all_.sms[sm],
          list.begin() + static_cast<std::ptrdiff_t>(sm * gpu::block_most_instructions),
          [&](const Instruction& i) { return device_form(all_, i, most_rows(all_, i.step)); });
    }
    return uploaded(list);
  }
  template <class T>
  std::uint64_t uploaded(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    workspaces_.push_back(context_.device.allocate(Bytes(static_cast<std::int64_t>(bytes.size()))));
    workspaces_.back().upload(bytes);
    return workspaces_.back().address();
  }
  std::uint64_t zeroed(std::int64_t bytes) {
    workspaces_.push_back(context_.device.allocate(Bytes(bytes)));
    workspaces_.back().fill(0);
    return workspaces_.back().address();
  }
  [[nodiscard]] gpu::BlockMatrix matrix(const Operand& o) const {
    const GpuMatrix m = context_.tensors.matrix(o);
    FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 4 == 0, "rows of whole words");
    return {m.address, m.leading()};
  }

  [[nodiscard]] gpu::BlockMap map(const Operand& o, std::int64_t box_rows) const {
    return device_form(map_of(context_.device, context_.tensors.matrix(o), narrow(box_rows),
                              gpu::block_box_columns, 128));
  }
  // Boxes of 64 columns that lie beside each other, so that one copy brings a slice of so many
  // rows. Half of the last 64 columns may lie behind a row: nobody multiplies them, and behind the
  // last row tensors have room for them.
  [[nodiscard]] gpu::BlockMap slice_map(const Operand& o, std::int64_t rows) const {
    constexpr std::int64_t columns = gpu::block_box_columns;
    const GpuMatrix m = context_.tensors.matrix(o);
    const std::int64_t box_bytes = columns * size_of(m.type);
    FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                    "the copy engine moves rows that start at multiples of 16 bytes");
    return device_form(
        context_.device.tensor_map({.type = tensor_type(m.type),
                                    .address = m.address,
                                    .rows = m.rows,
                                    .cols = columns,
                                    .row_bytes = m.row_bytes,
                                    .box_rows = narrow(rows),
                                    .box_cols = gpu::block_box_columns,
                                    .swizzle = narrow(box_bytes),
                                    .beside = ceil_div(m.cols, columns),
                                    .beside_bytes = box_bytes,
                                    .box_beside = gpu::block_slice_columns / gpu::block_box_columns,
                                    .stacked_bytes = m.rows * m.row_bytes}));
  }
  [[nodiscard]] gpu::BlockMap weight_map(const Operand& o, Step step) const {
    return slice_map(o, most_rows(all_, step));
  }

  const LaunchContext& context_;
  const BlockInstructions& all_;
  std::vector<DeviceBuffer> workspaces_;
};

}  // namespace

std::vector<InstructionTime> instruction_times(const Launch& launch,
                                               const BlockInstructions& instructions,
                                               const Gpu& described) {
  const auto* kernel = dynamic_cast<const KernelLaunch*>(&launch);
  FUSELINE_ASSERT(kernel != nullptr, "the launch of a block is our own");
  std::vector<std::uint64_t> times(instructions.sms.size() * gpu::block_most_instructions * kTimes);
  kernel->workspaces().back().download(std::as_writable_bytes(std::span(times)));
  const auto at = [&](std::size_t sm, std::size_t i) {
    return &times[kTimes * (sm * gpu::block_most_instructions + i)];
  };
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t sm = 0; sm < instructions.sms.size(); ++sm)
    if (!instructions.sms[sm].empty()) first = std::min(first, *at(sm, 0));
  const auto since = [&](std::uint64_t time) {
    return time == 0 ? 0 : static_cast<std::int64_t>(time - first);
  };
  const auto nanoseconds = [](Seconds s) { return static_cast<std::int64_t>(s.value() * 1e9); };
  const InstructionEvents events = simulate_instructions(instructions, described, kPredictedRing);
  std::vector<InstructionTime> result;
  for (std::size_t sm = 0; sm < instructions.sms.size(); ++sm) {
    for (std::size_t i = 0; i < instructions.sms[sm].size(); ++i) {
      const Instruction& in = instructions.sms[sm][i];
      result.push_back({.sm = static_cast<int>(sm),
                        .index = static_cast<int>(i),
                        .step = name_of(in.step),
                        .text = text_of(instructions, in),
                        .begin = since(at(sm, i)[0]),
                        .data = since(at(sm, i)[1]),
                        .end = since(at(sm, i)[2]),
                        .predicted_begin = nanoseconds(events.sms[sm][i].begin),
                        .predicted_end = nanoseconds(events.sms[sm][i].end)});
    }
  }
  return result;
}

Launches prepare_block(const LaunchContext& context, const BlockKernelSource& kernel,
                       const BlockInstructions& instructions) {
  KernelFunction code = load_function(context, kernel.source, kernel.function);
  Preparing preparing(context, instructions);
  gpu::BlockArgs arguments = preparing.arguments();
  std::vector<DeviceBuffer> workspaces = preparing.take_workspaces();
  const auto sms = static_cast<std::int64_t>(instructions.sms.size());
  // The last: instruction_times() reads it.
  workspaces.push_back(
      context.device.allocate(Bytes(8 * kTimes * sms * gpu::block_most_instructions)));
  workspaces.back().fill(0);
  arguments.record = workspaces.back().address();

  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(sms);
  shape.block[0] = gpu::block_threads;
  shape.shared_bytes = code.shared_bytes;
  return one_launch(std::move(code.function), shape, {bytes_of(arguments)}, std::move(workspaces));
}

}  // namespace fuseline::cuda

#endif
