// Our own form: what scripts/export_block.py writes.
//
//   {"format": "fuseline.graph/1", "module": "LlamaDecoderLayer", "torch": "2.7.1",
//    "inputs": [{"name": "x", "kind": "input", "shape": [1, 5, 64], "dtype": "bfloat16"},
//               {"name": "p_w", "kind": "parameter", "owner": "q_proj.weight", ...}],
//    "nodes": [{"name": "linear", "target": "aten.linear.default",
//               "args": [{"node": "x"}, {"node": "p_w"}], "kwargs": {},
//               "shape": [1, 5, 64], "dtype": "bfloat16", "file": "modeling.py", "line": 67}],
//    "outputs": ["linear"]}
//
// A part of a call that gives several tensors has the target "getitem".
#include "model/config/config.h"
#include "model/import/graph_names.h"

namespace fuseline {

namespace {

constexpr const char* kFormat = "fuseline.graph/1";
constexpr int kLastLine = 100'000'000;

SavedArgument read_argument(const JsonPlace& at, const GraphNames& names) {
  const nlohmann::json& value = at.value();
  if (value.is_null()) return {};
  if (value.is_boolean()) return {value.get<bool>()};
  if (value.is_number_integer()) return {at.whole(INT64_MIN, INT64_MAX)};
  if (value.is_number()) return {value.get<double>()};
  if (value.is_string()) return {at.text()};
  if (value.is_array()) {
    SavedList list;
    for (const JsonPlace& item : at.items()) list.push_back(read_argument(item, names));
    return {std::move(list)};
  }
  const JsonPlace node = at.at("node");
  return {names.find(node.text(), node)};
}

void read_tensor(SavedNode& node, const JsonPlace& at) {
  if (const auto shape = at.find("shape")) {
    std::vector<std::int64_t> sizes;
    for (const JsonPlace& size : shape->items()) sizes.push_back(size.whole(0, INT64_MAX));
    const bool is_made = node.kind == SavedKind::call || node.kind == SavedKind::part;
    node.shape = checked_shape(sizes, *shape, is_made ? 0 : 1);
    node.has_shape = true;
  }
  if (const auto dtype = at.find("dtype")) node.dtype = dtype->text();
}

SavedNode read_input(const JsonPlace& at) {
  SavedNode node;
  node.name = at.at("name").text();
  const JsonPlace kind = at.at("kind");
  if (kind.text() == "input")
    node.kind = SavedKind::input;
  else if (kind.text() == "parameter")
    node.kind = SavedKind::parameter;
  else if (kind.text() == "buffer")
    node.kind = SavedKind::buffer;
  else
    kind.fail("there is no such kind", "input, parameter, buffer");
  read_tensor(node, at);
  if (const auto owner = at.find("owner")) node.owner = owner->text();
  return node;
}

SavedNode read_node(const JsonPlace& at, const GraphNames& names) {
  SavedNode node;
  node.name = at.at("name").text();
  const JsonPlace target = at.at("target");
  node.target = target.text();
  node.kind = node.target == "getitem" ? SavedKind::part : SavedKind::call;
  for (const JsonPlace& argument : at.at("args").items())
    node.args.push_back(read_argument(argument, names));
  if (const auto kwargs = at.find("kwargs")) {
    if (!kwargs->value().is_object()) kwargs->fail("is no object", "arguments by name");
    for (const auto& [name, value] : kwargs->value().items())
      node.named[name] = read_argument(kwargs->at(name), names);
  }
  read_tensor(node, at);
  if (const auto file = at.find("file")) node.file = file->text();
  if (const auto line = at.find("line")) node.line = static_cast<int>(line->whole(0, kLastLine));
  if (node.kind == SavedKind::part &&
      (node.args.size() != 2 || node.args[0].get<NodeRef>() == nullptr ||
       node.args[1].get<std::int64_t>() == nullptr))
    at.at("args").fail("names no part of a node", "a node and the number of its part");
  return node;
}

}  // namespace

SavedGraph read_own_graph(const JsonPlace& top, const std::string& path) {
  const JsonPlace format = top.at("format");
  if (format.text() != kFormat) format.fail("there is no such form", kFormat);
  SavedGraph graph;
  graph.path = path;
  if (const auto module = top.find("module")) graph.made_by = module->text();
  if (const auto torch = top.find("torch"))
    graph.made_by += (graph.made_by.empty() ? "PyTorch " : ", PyTorch ") + torch->text();
  GraphNames names(graph);
  for (const JsonPlace& input : top.at("inputs").items()) names.add(read_input(input), input);
  for (const JsonPlace& node : top.at("nodes").items()) names.add(read_node(node, names), node);
  for (const JsonPlace& output : top.at("outputs").items())
    graph.outputs.push_back(names.find(output.text(), output).index);
  return graph;
}

}  // namespace fuseline
