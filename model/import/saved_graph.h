// A graph that PyTorch saved, as it lies in the file: what is called with what. Nothing is
// recognised here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace fuseline {

// A node that an argument names, by its place in SavedGraph::nodes.
struct NodeRef {
  std::size_t index = 0;
  friend bool operator==(const NodeRef&, const NodeRef&) = default;
};

struct SavedArgument;
using SavedList = std::vector<SavedArgument>;

// An argument of a call. std::monostate is None. Data types and devices are texts.
struct SavedArgument {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, NodeRef, SavedList> value{};

  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&value);
  }
};

enum class SavedKind : std::uint8_t {
  input,      // of the module's forward()
  parameter,  // a weight
  buffer,     // numbers that are not trained, and constants
  call,       // of an operator
  part,       // one tensor of a call that gives several: args are the call and the number
};

struct SavedNode {
  std::string name{};
  SavedKind kind = SavedKind::call;
  std::string target{};                          // of a call: "aten.linear.default"
  std::vector<SavedArgument> args{};             // in order
  std::map<std::string, SavedArgument> named{};  // by the operator's own names
  bool has_shape = false;                        // no shape: several tensors, or none
  std::vector<std::int64_t> shape{};
  std::string dtype{};  // "bfloat16"
  std::string owner{};  // of a parameter or buffer: "self_attn.q_proj.weight"
  std::string file{};   // of the line in a module that made the call; empty: not saved
  int line = 0;
};

// Nodes stand behind those that they read.
struct SavedGraph {
  std::string path{};
  std::string made_by{};  // "LlamaDecoderLayer, PyTorch 2.7.1", for remarks
  std::vector<SavedNode> nodes;
  std::vector<std::size_t> outputs;
};

// Files and graphs beyond these are no single layers.
inline constexpr std::int64_t kLargestGraphFile = std::int64_t{64} << 20;  // bytes
inline constexpr std::size_t kMostNodes = 10'000;

// Of the text of a file: our own form (scripts/export_block.py writes it), or the JSON of a program
// that torch.export.save() wrote. InputError with the field: no JSON, another form, fields of the
// wrong kind, names that are given twice, never or too late.
SavedGraph read_saved_graph(const std::string& text, const std::string& path);

}  // namespace fuseline
