#include "cuda/emit/scan_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/stream_body.h"
#include "cuda/emit/stream_text.h"
#include "cuda/emit/widths.h"
#include "sim/kernels/scan_chunks.h"

namespace fuseline::cuda {

namespace {

// Threads of a multiprocessor, with 128 registers each, or 170 where they hold much of the state.
// Left to itself, the compiler spills to make room for more.
int resident_threads(const ScanLayout& l) { return l.columns * l.numbers < 32 ? 512 : 384; }

const char* decay_of(const ScanMainloop& scan) {
  if (!scan.rates) return "given";
  return scan.has_rates_of_columns() ? "of_columns" : "of_heads";
}

// The names are those that the mainloop reads.
std::vector<StreamField> mainloop_fields(const Graph& graph, const ScanMainloop& scan) {
  // Every group of k and q begins at a whole vector, or its numbers move one by one.
  const bool groups = scan.shape.groups == 1 || scan.shape.state_width % kVectorCols == 0;
  std::vector<StreamField> fields;
  const auto add = [&](const char* name, const Operand& operand, bool whole = true) {
    fields.push_back({.kind = StreamFieldKind::tile,
                      .name = name,
                      .operand = operand,
                      .aligned = whole && moves_vectors(graph, operand)});
  };
  add("x", scan.x);
  add("step", scan.log_decay);
  add("k", scan.k, groups);
  add("q", scan.q, groups);
  if (scan.rates) add("rates", *scan.rates);
  if (scan.state) add("state", *scan.state);
  if (scan.state_after) add("state_after", *scan.state_after);
  if (!scan.gradient) return fields;
  const ScanGradient& g = *scan.gradient;
  add("dy", g.dy);
  if (g.states) add("states", *g.states);
  add("d_step", g.d_decay);
  add("dk", g.dk);
  add("dq", g.dq);
  if (g.d_rates) add("d_rates", *g.d_rates);
  return fields;
}

// How a mainloop is written into the source.
struct Written {
  std::string header, constants, shared_of_tile, entry, space = "ScanSpace";
  std::int64_t threads = 0, blocks = 0, blocks_at_once = 1, shared_bytes = 0;
};

std::string common_constants(const ScanMainloop& scan) {
  return fmt::format(
      "static constexpr Decay decay = Decay::{};\n  static constexpr bool begins = {}, ends = {};\n"
      "  static constexpr int kept_tokens = {}",
      decay_of(scan), scan.state.has_value(), scan.state_after.has_value(),
      scan.keeps_states() ? scan.shape.kept_tokens(scan.has_rates_of_columns()) : 0);
}

Written walk_of(const ScanMainloop& scan) {
  const ScanLayout l = scan_layout(scan);
  return {.header = "scan/mainloop.cuh",
          .constants = fmt::format(
              "threads = {}, lanes = {}, numbers = {}, columns = {}, groups = {}, tokens = {}, "
              "together = {}, units = {};\n  {}",
              l.threads, l.lanes, l.numbers, l.columns, l.groups, l.tokens, l.together, l.units,
              common_constants(scan)),
          .shared_of_tile = "4 * ScanTile<Kernel>::shared_floats",
          .entry = "scan",
          .threads = l.threads,
          .blocks = scan_blocks(scan, l),
          .blocks_at_once = std::max(1, resident_threads(l) / l.threads),
          .shared_bytes = l.shared_bytes()};
}

Written chunks_of(const ScanMainloop& scan, const ChunkLayout& l) {
  return {.header = "scan/chunks.cuh",
          .constants = fmt::format(
              "cols = {}, numbers = {}, across = {}, units = {};\n  using Element = bf16;\n  {}",
              l.cols, l.numbers, l.across(), l.cols / 16, common_constants(scan)),
          .shared_of_tile = "ChunkTile<Kernel>::shared_bytes",
          .entry = "scan_chunks",
          .threads = l.threads(),
          .blocks = chunk_blocks(scan.shape, l),
          .shared_bytes = l.shared_bytes()};
}

Written gradient_of(const ScanMainloop& scan, const ScanGradientLayout& l) {
  return {.header = "scan/gradient.cuh",
          .constants = fmt::format(
              "threads = {}, lanes = {}, numbers = {}, columns = {}, heads = {}, together = {}, "
              "units = {};\n  static constexpr Decay decay = Decay::{};\n"
              "  static constexpr bool begins = {}",
              l.threads, l.lanes, l.numbers, l.columns, l.heads, l.together, l.units,
              decay_of(scan), scan.gradient->states.has_value()),
          .shared_of_tile = "4 * ScanGradientTile<Kernel>::shared_floats",
          .entry = "scan_gradient",
          .space = "ScanGradientSpace",
          .threads = l.threads,
          .blocks = scan_gradient_blocks(scan, l),
          .shared_bytes = l.shared_bytes()};
}

// `Params` and the space are the kernel's parameters.
std::string kernel_text(const std::string& function, const std::string& entry,
                        const std::string& space, std::int64_t threads, std::int64_t blocks) {
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}, {})\n"
      "{}(const __grid_constant__ fuseline::gpu::stream::Kernel::Params params,\n"
      "   const __grid_constant__ fuseline::gpu::stream::{} space) {{\n"
      "  fuseline::gpu::begin_behind_the_kernel_before();\n"
      "  fuseline::gpu::stream::{}<fuseline::gpu::stream::Kernel>(params, space);\n}}\n",
      threads, blocks, function, space, entry);
}

}  // namespace

ScanKernelSource scan_kernel_source(const Graph& graph, const Program& program,
                                    const std::string& title, std::int64_t shared_bytes,
                                    std::int64_t multiprocessors) {
  const auto* scan = std::get_if<ScanMainloop>(&program.mainloop);
  FUSELINE_ASSERT(scan != nullptr, program.name + " is no scan");
  const StreamValues values = stream_values(program);
  StreamBody body = stream_body(graph, program, values, stream_shape(graph, program, values));
  std::vector<StreamField> fields = mainloop_fields(graph, *scan);
  fields.insert(fields.end(), body.fields.begin(), body.fields.end());
  body.fields = std::move(fields);

  ScanKernelSource kernel;
  Written w;
  if (scan->gradient) {
    kernel.gradient = scan_gradient_layout(*scan);
    FUSELINE_ASSERT(kernel.gradient.has_value(), program.name + ": a gradient that is not built");
    w = gradient_of(*scan, *kernel.gradient);
  } else {
    const std::optional<ChunkLayout> chunks =
        chunk_layout(graph, *scan, shared_bytes, multiprocessors);
    w = chunks ? chunks_of(*scan, *chunks) : walk_of(*scan);
  }
  kernel.threads = w.threads;
  kernel.blocks = w.blocks;
  kernel.function = body.steps.empty() ? w.entry : function_name(w.entry, body.steps);
  kernel.source.name = kernel.function + ".cu";
  std::string& text = kernel.source.text;
  text = stream_comment(graph, program, title, body.fields);
  text += fmt::format("#include \"{}\"\n\nnamespace fuseline::gpu::stream {{\n\n", w.header);
  text += body.functions + struct_text(graph, body, w.constants, false);
  text += fmt::format(
      "static_assert({} == {}, \"the host knows the size\");\n\n"
      "}}  // namespace fuseline::gpu::stream\n\n",
      w.shared_of_tile, w.shared_bytes);
  text += fmt::format("extern \"C\" __constant__ int {}_shared_bytes = {};\n\n", kernel.function,
                      w.shared_bytes);
  text += kernel_text(kernel.function, w.entry, w.space, w.threads, w.blocks_at_once);
  if (kernel.gradient)
    text += "\n" + kernel_text(kernel.function + "_sums", "scan_gradient_sums", w.space,
                               scan_sum_threads, 1);
  kernel.fields = std::move(body.fields);
  return kernel;
}

}  // namespace fuseline::cuda
