#include "cuda/emit/stream_source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/stream_body.h"
#include "cuda/emit/stream_text.h"

namespace fuseline::cuda {

namespace {

const char* loop_of(StreamLoop loop) {
  switch (loop) {
    case StreamLoop::tiles:
      return "tiles";
    case StreamLoop::rows:
      return "rows";
    case StreamLoop::columns_down:
      return "columns_down";
  }
  FUSELINE_ASSERT(false, "unknown mainloop");
}

const char* space_of(StreamLoop loop) {
  switch (loop) {
    case StreamLoop::tiles:
      return "TileSpace";
    case StreamLoop::rows:
      return "RowSpace";
    case StreamLoop::columns_down:
      return "ColumnSpace";
  }
  FUSELINE_ASSERT(false, "unknown mainloop");
}

std::string constants_of(const StreamShape& s) {
  switch (s.loop) {
    case StreamLoop::tiles:
      return fmt::format("units = {}, distance = {}", s.units, s.distance);
    case StreamLoop::rows:
      return fmt::format("units = {}, threads = {}, inner_rows = {}", s.units, s.row_threads,
                         s.inner_rows);
    case StreamLoop::columns_down:
      return fmt::format("units = {}, threads = {}, lanes = {}, inner_rows = {}", s.units,
                         s.block_threads, s.lanes, s.inner_rows);
  }
  FUSELINE_ASSERT(false, "unknown mainloop");
}

}  // namespace

StreamKernelSource stream_kernel_source(const Graph& graph, const Program& program,
                                        const std::string& title) {
  const StreamValues values = stream_values(program);
  StreamKernelSource kernel;
  kernel.shape = stream_shape(graph, program, values);
  StreamBody body = stream_body(graph, program, values, kernel.shape);
  kernel.function = function_name(loop_of(kernel.shape.loop), body.steps);
  kernel.source.name = kernel.function + ".cu";

  std::string& text = kernel.source.text;
  text = stream_comment(graph, program, title, body.fields);
  text += "#include \"stream/mainloop.cuh\"\n\nnamespace fuseline::gpu::stream {\n\n";
  text += body.functions +
          struct_text(graph, body, constants_of(kernel.shape),
                      kernel.shape.loop == StreamLoop::columns_down) +
          "\n}  // namespace fuseline::gpu::stream\n\n";
  text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}{})\n"
      "{}(const __grid_constant__ fuseline::gpu::stream::Kernel::Params params,\n"
      "   const __grid_constant__ fuseline::gpu::stream::{} space) {{\n"
      "  fuseline::gpu::begin_behind_the_kernel_before();\n"
      "  fuseline::gpu::stream::{}<fuseline::gpu::stream::Kernel>(params, space);\n}}\n",
      kernel.shape.block_threads,
      kernel.shape.loop == StreamLoop::rows ? fmt::format(", {}", kernel.shape.resident_blocks)
                                            : "",
      kernel.function, space_of(kernel.shape.loop), loop_of(kernel.shape.loop));
  kernel.fields = std::move(body.fields);
  return kernel;
}

}  // namespace fuseline::cuda
