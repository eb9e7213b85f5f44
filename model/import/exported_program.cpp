// The JSON of a program that torch.export.save() wrote: models/model.json in a .pt2 file, or
// serialized_exported_program.json in those of PyTorch before 2.7. Facts of the form are those of
// torch/_export/serde/schema.py, schema version 8. A value of several kinds is an object of one
// field: {"as_tensor": {"name": "x"}}.
#include <fmt/format.h>

#include "base/error.h"
#include "model/import/graph_names.h"

namespace fuseline {

namespace {

constexpr int kSchema = 8;
constexpr int kLastType = 1000;

// ScalarType of the schema.
std::string type_name(std::int64_t type) {
  switch (type) {
    case 4:
      return "int32";
    case 5:
      return "int64";
    case 6:
      return "float16";
    case 7:
      return "float32";
    case 8:
      return "float64";
    case 12:
      return "bool";
    case 13:
      return "bfloat16";
    default:
      return fmt::format("type {}", type);
  }
}

class ProgramReader {
 public:
  ProgramReader(const JsonPlace& top, const std::string& path)
      : module_(top.at("graph_module")), graph_place_(module_.at("graph")), names_(graph_) {
    graph_.path = path;
    if (const auto version = top.find("schema_version")) {
      const JsonPlace major = version->at("major");
      if (major.whole(0, INT32_MAX) != kSchema)
        major.fail("is another version of the form",
                   fmt::format("{} (PyTorch 2.5 and later)", kSchema));
    }
    if (const auto torch = top.find("torch_version")) graph_.made_by = "PyTorch " + torch->text();
  }

  SavedGraph read() {
    inputs();
    for (const JsonPlace& node : graph_place_.at("nodes").items()) call(node);
    outputs();
    return std::move(graph_);
  }

 private:
  // The one field of a value of several kinds.
  static std::pair<std::string, JsonPlace> one_of(const JsonPlace& at) {
    if (!at.value().is_object() || at.value().size() != 1)
      at.fail("is no value with its kind", "an object of one field, such as as_tensor");
    const std::string& kind = at.value().begin().key();
    return {kind, at.at(kind)};
  }

  // A size that was left open has the one of the example beside it.
  std::int64_t size_of(const JsonPlace& at) const {
    const auto [kind, value] = one_of(at);
    if (kind == "as_int") return value.whole(INT64_MIN, INT64_MAX);
    if (kind == "as_expr")
      if (const auto hint = value.find("hint"))
        if (const auto number = hint->find("as_int")) return number->whole(0, INT64_MAX);
    at.fail("is a size that the file does not say", "export with the sizes of the example");
  }

  void take_tensor(SavedNode& node, const JsonPlace& at) const {
    const JsonPlace tensors = graph_place_.at("tensor_values");
    const auto meta = tensors.find(node.name);
    if (!meta) at.fail("has no shape in tensor_values", "a name that tensor_values has");
    const JsonPlace sizes = meta->at("sizes");
    std::vector<std::int64_t> shape;
    for (const JsonPlace& size : sizes.items()) shape.push_back(size_of(size));
    const bool is_made = node.kind == SavedKind::call || node.kind == SavedKind::part;
    node.shape = checked_shape(shape, sizes, is_made ? 0 : 1);
    node.has_shape = true;
    node.dtype = type_name(meta->at("dtype").whole(0, kLastType));
  }

  void inputs() {
    for (const JsonPlace& spec : module_.at("signature").at("input_specs").items()) {
      const auto [kind, value] = one_of(spec);
      SavedNode node;
      if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
        node.kind = kind == "parameter" ? SavedKind::parameter : SavedKind::buffer;
        const JsonPlace name = value.at("arg").at("name");
        node.name = name.text();
        node.owner = value.at(kind + "_name").text();
        take_tensor(node, name);
        names_.add(std::move(node), name);
      } else if (kind == "user_input") {
        const auto [of, argument] = one_of(value.at("arg"));
        if (of != "as_tensor") continue;  // a number or None: calls that read it hold its value
        const JsonPlace name = argument.at("name");
        node.kind = SavedKind::input;
        node.name = name.text();
        take_tensor(node, name);
        names_.add(std::move(node), name);
      }
    }
  }

  SavedArgument tensor(const JsonPlace& at) const {
    const JsonPlace name = at.at("name");
    return {names_.find(name.text(), name)};
  }

  // What an operator reads as numbers stays a number; sizes that were left open are those of the
  // example.
  SavedArgument number_or_name(const JsonPlace& at) const {
    const auto [kind, value] = one_of(at);
    if (kind == "as_int") return {value.whole(INT64_MIN, INT64_MAX)};
    const std::string& name = value.text();
    const auto sizes = graph_place_.find("sym_int_values");
    if (const auto size = sizes ? sizes->find(name) : std::nullopt) return {size_of(*size)};
    value.fail("is a size that the file does not say", "export with the sizes of the example");
  }

  SavedArgument argument(const JsonPlace& at) const {
    const auto [kind, value] = one_of(at);
    const auto list_of = [&, &of = value](auto&& read) {
      SavedList list;
      for (const JsonPlace& item : of.items()) list.push_back(read(item));
      return SavedArgument{std::move(list)};
    };
    const auto plain = [](const JsonPlace& item) -> SavedArgument {
      const nlohmann::json& v = item.value();
      if (v.is_boolean()) return {v.get<bool>()};
      if (v.is_number_integer()) return {item.whole(INT64_MIN, INT64_MAX)};
      if (v.is_number()) return {v.get<double>()};
      return {item.text()};
    };
    if (kind == "as_none") return {};
    if (kind == "as_tensor") return tensor(value);
    if (kind == "as_tensors")
      return list_of([this](const JsonPlace& item) { return tensor(item); });
    if (kind == "as_optional_tensor" || kind == "as_optional_tensors") {
      const auto optional = [this](const JsonPlace& item) -> SavedArgument {
        const auto [of, inner] = one_of(item);
        return of == "as_tensor" ? tensor(inner) : SavedArgument{};
      };
      return kind == "as_optional_tensor" ? optional(value) : list_of(optional);
    }
    if (kind == "as_sym_int") return number_or_name(value);
    if (kind == "as_sym_ints")
      return list_of([this](const JsonPlace& item) { return number_or_name(item); });
    if (kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_string")
      return plain(value);
    if (kind == "as_scalar_type") return {type_name(value.whole(0, kLastType))};
    if (kind == "as_ints" || kind == "as_floats" || kind == "as_bools" || kind == "as_strings")
      return list_of(plain);
    return {std::string(kind)};  // memory formats, devices, layouts: nothing that we ask for
  }

  void call(const JsonPlace& at) {
    SavedNode node;
    node.target = at.at("target").text();
    constexpr std::string_view kPrefix = "torch.ops.";
    if (node.target.starts_with(kPrefix)) node.target.erase(0, kPrefix.size());
    for (const JsonPlace& input : at.at("inputs").items())
      node.named[input.at("name").text()] = argument(input.at("arg"));
    if (const auto metadata = at.find("metadata"))
      if (const auto trace = metadata->find("stack_trace")) take_place(node, trace->text());
    const std::vector<JsonPlace> outputs = at.at("outputs").items();
    if (outputs.size() != 1) {
      several(std::move(node), outputs, at);
      return;
    }
    const auto [kind, value] = one_of(outputs.front());
    if (kind == "as_tensor") {
      const JsonPlace name = value.at("name");
      node.name = name.text();
      take_tensor(node, name);
      names_.add(std::move(node), name);
    } else if (kind == "as_tensors") {
      parts(std::move(node), value.items(), at);
    }
    // Numbers and None: what reads them holds their values.
  }

  void several(SavedNode node, const std::vector<JsonPlace>& outputs, const JsonPlace& at) {
    std::vector<JsonPlace> tensors;
    for (const JsonPlace& output : outputs) {
      const auto [kind, value] = one_of(output);
      if (kind != "as_tensor") return;
      tensors.push_back(value);
    }
    if (!tensors.empty()) parts(std::move(node), tensors, at);
  }

  void parts(SavedNode node, const std::vector<JsonPlace>& tensors, const JsonPlace& at) {
    // Several tensors have no name together in the file.
    node.name = at.path();
    const std::string file = node.file;
    const int line = node.line;
    const NodeRef whole{graph_.nodes.size()};
    names_.add(std::move(node), at);
    std::int64_t number = 0;
    for (const JsonPlace& tensor : tensors) {
      const JsonPlace name = tensor.at("name");
      SavedNode part;
      part.kind = SavedKind::part;
      part.target = "getitem";
      part.name = name.text();
      part.args = {{whole}, {number++}};
      part.file = file;
      part.line = line;
      take_tensor(part, name);
      names_.add(std::move(part), name);
    }
  }

  void outputs() {
    for (const JsonPlace& spec : module_.at("signature").at("output_specs").items()) {
      const auto [kind, value] = one_of(spec);
      if (kind != "user_output") continue;
      const auto [of, argument] = one_of(value.at("arg"));
      if (of != "as_tensor") continue;
      const JsonPlace name = argument.at("name");
      graph_.outputs.push_back(names_.find(name.text(), name).index);
    }
  }

  SavedGraph graph_;
  JsonPlace module_;
  JsonPlace graph_place_;
  GraphNames names_;
};

}  // namespace

SavedGraph read_exported_program(const JsonPlace& top, const std::string& path) {
  return ProgramReader(top, path).read();
}

}  // namespace fuseline
