// From calls of PyTorch's operators to steps of a block. Patterns (model/import/patterns) do the
// recognising; this knows what every node of the graph means so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/import/draft.h"
#include "model/import/import_graph.h"
#include "model/import/saved_graph.h"
#include "model/import/tensor_view.h"

namespace fuseline {

class Translator {
 public:
  Translator(const SavedGraph& graph, const ImportOptions& options);

  // InputError: inputs of no known form, operators that nothing here knows, with their lines.
  Draft translate();

  // For patterns. A node is its place in the graph.
  [[nodiscard]] const SavedNode& node(std::size_t at) const { return graph_.nodes[at]; }
  [[nodiscard]] const ImportOptions& options() const { return options_; }
  Draft& draft() { return draft_; }
  // "aten.mul" of "aten.mul.Tensor"; empty where the node is no call.
  [[nodiscard]] std::string_view call_of(std::size_t at) const { return calls_[at]; }
  [[nodiscard]] bool is_call(std::size_t at, std::string_view call) const {
    return calls_[at] == call;
  }
  // What the node is a view of; nothing where nobody could say.
  [[nodiscard]] const std::optional<TensorView>& view(std::size_t at) const { return views_[at]; }
  // Of the tensor that a node is, behind copies and changes of its type.
  [[nodiscard]] std::size_t behind(std::size_t at) const;
  // How many nodes read it.
  [[nodiscard]] int readers(std::size_t at) const { return readers_[at]; }

  // Arguments by place or by the operator's own name. Tensors are behind copies.
  [[nodiscard]] const SavedArgument* argument(std::size_t at, std::size_t place,
                                              const char* name) const;
  [[nodiscard]] std::optional<std::size_t> tensor(std::size_t at, std::size_t place,
                                                  const char* name) const;
  [[nodiscard]] std::optional<double> number(std::size_t at, std::size_t place,
                                             const char* name) const;
  [[nodiscard]] std::int64_t whole_or(std::size_t at, std::size_t place, const char* name,
                                      std::int64_t absent) const;
  [[nodiscard]] bool flag_or(std::size_t at, std::size_t place, const char* name,
                             bool absent) const;
  [[nodiscard]] std::vector<std::int64_t> wholes(std::size_t at, std::size_t place,
                                                 const char* name) const;
  [[nodiscard]] std::vector<std::size_t> tensors(std::size_t at, std::size_t place,
                                                 const char* name) const;
  // The two tensors of a product or a sum.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> both(std::size_t at) const;
  // A tensor and a number, in any order.
  [[nodiscard]] std::optional<std::pair<std::size_t, double>> scaled(std::size_t at) const;

  // A weight vector, whole.
  [[nodiscard]] std::optional<MatrixColumns> vector(std::size_t at) const;
  [[nodiscard]] std::int64_t rows_of(const TensorView& view) const {
    return draft_.matrices[view.matrix].rows;
  }

  // Adds a step that looks at one element of each read at a time. All have the dimensions of the
  // first.
  std::optional<TensorView> pointwise(DraftStep step, const std::vector<std::size_t>& reads);

 private:
  void take_input(std::size_t at);
  void take_call(std::size_t at);
  void take_outputs();
  [[nodiscard]] bool is_within_a_step(std::size_t at) const;
  [[noreturn]] void refuse(const std::vector<std::size_t>& outputs) const;
  [[nodiscard]] std::vector<std::size_t> read_by(std::size_t at) const;

  const SavedGraph& graph_;
  const ImportOptions& options_;
  std::vector<std::string> calls_;
  std::vector<int> readers_;
  std::vector<std::optional<TensorView>> views_;
  Draft draft_;
  std::optional<std::size_t> main_input_;
};

}  // namespace fuseline
