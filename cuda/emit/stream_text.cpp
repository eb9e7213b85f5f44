#include "cuda/emit/stream_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "cuda/emit/comment.h"

namespace fuseline::cuda {

namespace {

constexpr std::size_t kLongestName = 60;

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

}  // namespace

std::string function_name(const std::string& loop, const std::vector<std::string>& steps) {
  std::string name = loop;
  std::vector<std::string> seen;
  for (const std::string& step : steps) {
    if (std::ranges::find(seen, step) != seen.end()) continue;
    if (name.size() + 1 + step.size() > kLongestName) break;
    seen.push_back(step);
    name += "_" + step;
  }
  return seen.empty() ? name + "_copy" : name;
}

std::string stream_comment(const Graph& graph, const Program& program, const std::string& title,
                           const std::vector<StreamField>& fields) {
  return as_comment(title) + "//\n" + as_comment(print_program(graph, program)) + "//\n" +
         as_comment(legend(graph, fields));
}

std::string struct_text(const Graph& graph, const StreamBody& body, const std::string& constants,
                        bool finishes) {
  std::string t =
      fmt::format("struct Kernel {{\n  static constexpr int {};\n  struct Params {{\n", constants);
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
  if (!body.after_block.empty())
    t += "  template <class Place>\n  static FUSELINE_DEVICE void after_block(const Params& p, "
         "State& state, const Place& place,\n                                     int block) {\n" +
         body.after_block + "  }\n";
  if (finishes)
    t += "  template <class Place>\n  static FUSELINE_DEVICE void finish(const Params& p, State& "
         "state, const Place& place,\n                                     int block) {\n" +
         body.finish + "  }\n";
  t += "};\n";
  t += fmt::format(
      "static_assert(sizeof(Kernel::Params) == {}, \"the host lays out the parameters alike\");\n",
      lay_out(parts).whole.size);
  return t;
}

}  // namespace fuseline::cuda
