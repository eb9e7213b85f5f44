#include "cuda/emit/block_source.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/comment.h"
#include "cuda/kernels/block/instruction.cuh"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kMostSequences = 8;
constexpr std::int64_t kMostQueries = 8;        // of a key head: one warp joins those of one query
constexpr std::int64_t kMostHeadColumns = 512;  // G · d, of partial softmaxes in shared memory
constexpr std::int64_t kColumnsAtOnce = 32;     // that a warp multiplies at once

std::string type_problem(const Graph& graph, const DecodeBlock& b) {
  for (const Operand* o : {&b.x, &b.w_qkv, &b.cos, &b.sin, &b.q, &b.k, &b.v, &b.attn, &b.w_o, &b.h,
                           &b.w_gate_up, &b.act, &b.w_down, &b.y})
    if (const Tensor& t = graph.tensor(o->tensor); t.dtype != Dtype::bf16)
      return fmt::format("{} is in {}, not bf16", t.name, name_of(t.dtype));
  for (const Operand* o : {&b.x_stats, &b.h_stats, &b.y_stats, &b.r_norm1, &b.r_norm2})
    if (const Tensor& t = graph.tensor(o->tensor); t.dtype != Dtype::fp32)
      return fmt::format("{} is in {}, not fp32", t.name, name_of(t.dtype));
  return "";
}

std::string size_problem(const DecodeBlock& b) {
  if (b.batch > kMostSequences)
    return fmt::format("{} sequences are more than {}", b.batch, kMostSequences);
  if (b.width != 64 && b.width != 128)
    return fmt::format("heads have {} columns, not 64 or 128", b.width);
  if (b.group() > kMostQueries || b.group() * b.width > kMostHeadColumns)
    return fmt::format("{} query heads of {} columns share a key head, more than {} columns",
                       b.group(), b.width, kMostHeadColumns);
  for (const std::int64_t columns : {b.model, b.inner})
    if (columns % kColumnsAtOnce != 0)
      return fmt::format("{} columns are no multiple of {}", columns, kColumnsAtOnce);
  return "";
}

}  // namespace

bool is_block_kernel(const Kernel& kernel) {
  return kernel.implementation == Implementation::persistent_block;
}

std::string block_not_built(const Graph& graph, const Kernel& kernel, SmTarget target) {
  if (target != SmTarget::sm_90a) return "it needs Hopper's bulk copies";
  const std::variant<DecodeBlock, std::string> read = decode_block(graph, kernel);
  if (const auto* why = std::get_if<std::string>(&read)) return *why;
  const auto& block = std::get<DecodeBlock>(read);
  const std::string problem = type_problem(graph, block);
  return problem.empty() ? size_problem(block) : problem;
}

BlockKernelSource block_kernel_source(const Plan& plan, const Kernel& kernel, SmTarget target) {
  if (const std::string why = block_not_built(plan.graph, kernel, target); !why.empty())
    throw MissingError(
        fmt::format("policy {} has no kernel for a real GPU yet: {} keeps {} phases in one launch, "
                    "which is built for decode blocks like LLaMA's only; {}",
                    plan.policy, kernel.name, kernel.phases.size(), why));
  BlockKernelSource made;
  made.block = std::get<DecodeBlock>(decode_block(plan.graph, kernel));
  const DecodeBlock& b = made.block;
  made.function = "decode_block";
  made.source.name = made.function + ".cu";
  const std::string shape =
      fmt::format("fuseline::gpu::BlockShape<{}, {}, {}>", b.batch, b.width, b.group());
  made.source.text =
      as_comment(fmt::format("Policy {}, kernel {}: all phases of a decode block in one launch.\n"
                             "{} sequences, {} query heads and {} key heads of {} columns.",
                             plan.policy, kernel.name, b.batch, b.heads, b.kv_heads, b.width)) +
      fmt::format(
          "#include \"block/decode_block.cuh\"\n\n"
          "extern \"C\" __constant__ int {0}_shared_bytes = {1}::shared_bytes;\n\n"
          "extern \"C\" __global__ void __launch_bounds__(fuseline::gpu::block_threads, 1)\n"
          "{0}(const __grid_constant__ fuseline::gpu::BlockArgs args) {{\n"
          "  fuseline::gpu::begin_behind_the_kernel_before();\n"
          "  fuseline::gpu::decode_block<{1}>(args);\n}}\n",
          made.function, shape);
  return made;
}

InstructionSizes block_sizes(int multiprocessors) {
  return {.sms = multiprocessors,
          .tile_rows = gpu::block_tile_rows,
          .slice_columns = gpu::block_slice_columns,
          .slice_elements = gpu::block_slice_elements,
          .most_waits = gpu::block_most_waits};
}

}  // namespace fuseline::cuda
