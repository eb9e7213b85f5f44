#include "cuda/emit/stream_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/comment.h"
#include "cuda/emit/stream_body.h"

namespace fuseline::cuda {

namespace {

constexpr std::size_t kLongestName = 60;

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

// "tiles_silu_mul", each step once.
std::string function_name(StreamLoop loop, const std::vector<std::string>& steps) {
  std::string name = loop_of(loop);
  std::vector<std::string> seen;
  for (const std::string& step : steps) {
    if (std::ranges::find(seen, step) != seen.end()) continue;
    if (name.size() + 1 + step.size() > kLongestName) break;
    seen.push_back(step);
    name += "_" + step;
  }
  return seen.empty() ? name + "_copy" : name;
}

std::string constants_of(const StreamShape& s) {
  switch (s.loop) {
    case StreamLoop::tiles:
      return fmt::format("units = {}, distance = {}", s.units, s.distance);
    case StreamLoop::rows:
      return fmt::format("units = {}, threads = {}", s.units, s.row_threads);
    case StreamLoop::columns_down:
      return fmt::format("units = {}, threads = {}, lanes = {}", s.units, s.block_threads, s.lanes);
  }
  FUSELINE_ASSERT(false, "unknown mainloop");
}

// "in0 = qkv[:, 0:4096]"
std::string legend(const Graph& graph, const std::vector<StreamField>& fields) {
  std::string text;
  for (const StreamField& f : fields) {
    if (f.kind == StreamFieldKind::constant) {
      text += fmt::format("{} = {:g}\n", f.name, f.constant);
    } else if (f.kind == StreamFieldKind::count) {
      text += fmt::format("{} = {}\n", f.name, f.count);
    } else if (f.kind == StreamFieldKind::row_groups) {
      text += fmt::format("{} = where the rows of each group end\n", f.name);
    } else if (f.kind != StreamFieldKind::visible) {
      const Operand& o = f.operand;
      const Tensor& t = graph.tensor(o.tensor);
      text += o.cols == t.cols ? fmt::format("{} = {}\n", f.name, t.name)
                               : fmt::format("{} = {}[:, {}:{}]\n", f.name, t.name, o.col_begin,
                                             o.col_begin + o.cols);
    }
  }
  return text;
}

std::string struct_text(const Graph& graph, const StreamBody& body, const StreamShape& shape) {
  std::string t = fmt::format("struct Kernel {{\n  static constexpr int {};\n  struct Params {{\n",
                              constants_of(shape));
  std::vector<Layout> parts;
  for (const StreamField& f : body.fields) {
    t += fmt::format("    {} {};\n", type_of(graph, f), f.name);
    parts.push_back(layout_of(f.kind));
  }
  t += fmt::format("  }};\n  struct State {{{}}};\n",
                   body.state.empty() ? "" : "\n" + body.state + "  ");
  t += "  template <class Place>\n  static FUSELINE_DEVICE void run(const Params& p, State& state, "
       "const Place& place) {\n" +
       body.run + "  }\n";
  if (shape.loop == StreamLoop::columns_down)
    t += "  template <class Place>\n  static FUSELINE_DEVICE void finish(const Params& p, State& "
         "state, const Place& place,\n                                     int block) {\n" +
         body.finish + "  }\n";
  t += "};\n";
  t += fmt::format(
      "static_assert(sizeof(Kernel::Params) == {}, \"the host lays out the parameters alike\");\n",
      lay_out(parts).whole.size);
  return t;
}

}  // namespace

StreamKernelSource stream_kernel_source(const Graph& graph, const Program& program,
                                        const std::string& title) {
  const StreamValues values = stream_values(program);
  StreamKernelSource kernel;
  kernel.shape = stream_shape(graph, program, values);
  StreamBody body = stream_body(graph, program, values, kernel.shape);
  kernel.function = function_name(kernel.shape.loop, body.steps);
  kernel.source.name = kernel.function + ".cu";

  std::string& text = kernel.source.text;
  text = as_comment(title) + "//\n" + as_comment(print_program(graph, program)) + "//\n" +
         as_comment(legend(graph, body.fields));
  text += "#include \"stream/mainloop.cuh\"\n\nnamespace fuseline::gpu::stream {\n\n";
  text += body.functions + struct_text(graph, body, kernel.shape) +
          "\n}  // namespace fuseline::gpu::stream\n\n";
  text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}{})\n"
      "{}(const __grid_constant__ fuseline::gpu::stream::Kernel::Params params,\n"
      "   const __grid_constant__ fuseline::gpu::stream::{} space) {{\n"
      "  fuseline::gpu::stream::{}<fuseline::gpu::stream::Kernel>(params, space);\n}}\n",
      kernel.shape.block_threads,
      kernel.shape.loop == StreamLoop::rows ? fmt::format(", {}", kernel.shape.resident_blocks)
                                            : "",
      kernel.function, space_of(kernel.shape.loop), loop_of(kernel.shape.loop));
  kernel.fields = std::move(body.fields);
  return kernel;
}

}  // namespace fuseline::cuda
