// Which form a file has, and what both forms have in common.
#include "model/import/saved_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "model/config/config.h"
#include "model/import/graph_names.h"

namespace fuseline {

namespace {

constexpr const char* kForms =
    "a file that scripts/export_block.py wrote (\"format\": \"fuseline.graph/1\"), a .pt2 archive "
    "that torch.export.save() wrote, or its models/model.json";
constexpr std::size_t kMostDimensions = 8;
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

// "transformers/models/llama/modeling_llama.py" wherever the packages are installed: the folders
// above say nothing of the module, and one of them may be called torch.
std::string from_package_root(const std::string& file) {
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"})
    if (const std::size_t at = file.rfind(packages); at != std::string::npos)
      return file.substr(at + packages.size());
  return file;
}

}  // namespace

void GraphNames::add(SavedNode node, const JsonPlace& at) {
  if (node.name.empty()) at.fail("is an empty name", "a name");
  if (graph_.nodes.size() >= kMostNodes)
    throw InputError({.file = graph_.path,
                      .field = at.path(),
                      .message = "the graph has too many nodes for a layer",
                      .allowed = fmt::format("at most {}: export one layer", kMostNodes)});
  if (!places_.emplace(node.name, graph_.nodes.size()).second)
    throw InputError({.file = graph_.path,
                      .field = at.path(),
                      .value = node.name,
                      .message = "the name is given twice"});
  graph_.nodes.push_back(std::move(node));
}

NodeRef GraphNames::find(const std::string& name, const JsonPlace& at) const {
  if (const auto found = places_.find(name); found != places_.end()) return {found->second};
  std::vector<std::string> names;
  for (const auto& [known, place] : places_) names.push_back(known);
  throw InputError({.file = graph_.path,
                    .field = at.path(),
                    .value = name,
                    .message = "nothing above has this name",
                    .allowed = "nodes stand behind those that they read",
                    .nearest = nearest_name(name, names)});
}

std::vector<std::int64_t> checked_shape(const std::vector<std::int64_t>& sizes, const JsonPlace& at,
                                        std::int64_t least) {
  if (sizes.size() > kMostDimensions)
    at.fail("has too many dimensions", fmt::format("at most {}", kMostDimensions));
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size < least || size > kLargestDimension)
      at.fail("holds a size out of range",
              fmt::format("whole numbers from {} to {}", least, kLargestDimension));
    if (size > 0 && elements > kMostElements / size)
      at.fail("has too many elements", fmt::format("at most {}", kMostElements));
    elements *= std::max(size, std::int64_t{1});
  }
  return sizes;
}

// '  File "/a/modeling_llama.py", line 67, in forward\n    code\n', the innermost call last.
void take_place(SavedNode& node, const std::string& stack_trace) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  std::size_t at = stack_trace.rfind(kFile);
  while (at != std::string::npos) {
    const std::size_t begin = at + kFile.size();
    const std::size_t end = stack_trace.find(kLine, begin);
    if (end != std::string::npos) {
      const std::string file = from_package_root(stack_trace.substr(begin, end - begin));
      int line = 0;
      for (std::size_t i = end + kLine.size(); i < stack_trace.size() && stack_trace[i] >= '0' &&
                                               stack_trace[i] <= '9' && line < 1'000'000;
           ++i)
        line = 10 * line + (stack_trace[i] - '0');
      // The line of a module says more than the line of PyTorch that it calls.
      const bool inside_torch =
          file.starts_with("torch/") || file.find("/torch/") != std::string::npos;
      if (node.file.empty() || !inside_torch) {
        node.file = file;
        node.line = line;
      }
      if (!inside_torch) return;
    }
    if (at == 0) return;
    at = stack_trace.rfind(kFile, at - 1);
  }
}

SavedGraph read_saved_graph(const std::string& text, const std::string& path) {
  const nlohmann::json json = parse_json(text, path);
  const JsonPlace top(json, "", path);
  if (!json.is_object())
    throw InputError({.file = path, .message = "is no saved graph", .allowed = kForms});
  SavedGraph graph;
  if (json.contains("format")) {
    graph = read_own_graph(top, path);
  } else if (json.contains("graph_module")) {
    graph = read_exported_program(top, path);
  } else {
    throw InputError({.file = path, .message = "is no saved graph", .allowed = kForms});
  }
  if (graph.outputs.empty())
    throw InputError({.file = path, .message = "the graph has no output that is a tensor"});
  return graph;
}

}  // namespace fuseline
