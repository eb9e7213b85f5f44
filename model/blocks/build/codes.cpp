// What products read in few bits: a weight and the tensors beside it, and what meets the weight.
#include <fmt/format.h>

#include "base/error.h"
#include "model/blocks/build/builder.h"
#include "model/operators/all_operators.h"

namespace fuseline {

// Where the workload stores weights in few bits: the tensors beside this one, whose elements become
// codes. A weight that several products read has them once.
std::vector<TensorValue> BlockBuilder::stored_weight(const TensorValue& w, Position at) {
  const StoredWeight& stored = workload_.formats.weights;
  const TensorId id = w.operand.tensor;
  if (!stored.quantised() || graph_.tensor(id).role != Role::weight) return {};
  if (const auto known = beside_.find(id); known != beside_.end()) return known->second;
  const std::string name = graph_.tensor(id).name;
  const std::int64_t K = w.cols.value();
  const auto refuse = [&](const std::string& message, const std::string& allowed) {
    fail(at, {.field = name, .value = stored.name(), .message = message, .allowed = allowed});
  };
  if (w.operand != graph_.whole(id) || !graph_.consumers(id).empty())
    refuse("only a whole weight that nothing but products reads is stored in few bits",
           "a weight of its own");
  if (K * size_of(stored.element()).bits() % 8 != 0)
    refuse(fmt::format("a row of {} columns does not fill whole bytes", K),
           "an even number of columns");
  graph_.tensor(id).dtype = stored.element();
  // Every expert's matrix has scales of its own.
  const std::vector<std::int64_t>& outer = graph_.tensor(id).outer;
  const std::int64_t matrices = outer.size() == 2 ? outer[0] : 1;
  std::vector<TensorValue> beside;
  for (const ScaleTensor& t : stored.beside(w.rows.value() / matrices, K)) {
    const auto size = [](std::int64_t n, const ShapeSize& whole) {
      return n == whole.value() ? whole : ShapeSize(n);
    };
    const std::int64_t rows = t.kind == ScaleKind::tensor_scale ? t.rows : t.rows * matrices;
    beside.push_back(
        new_tensor(name + t.suffix, Role::weight, size(rows, w.rows), size(t.cols, w.cols), at));
    graph_.tensor(beside.back().operand.tensor).dtype = t.type;
  }
  beside_[id] = beside;
  return beside;
}

// Where the workload multiplies codes by codes: an operator makes those of x, once for all products
// that read it.
std::optional<BlockBuilder::CodedRows> BlockBuilder::coded_rows(const TensorValue& x,
                                                                const std::string& site,
                                                                Position at) {
  const StoredWeight& stored = workload_.formats.activations;
  if (!stored.quantised()) return std::nullopt;
  for (const auto& [operand, rows] : coded_)
    if (operand == x.operand) return rows;
  const std::string name = graph_.tensor(x.operand.tensor).name;
  const std::int64_t K = x.cols.value();
  if (stored.scaled_within_rows() && K % stored.group != 0)
    fail(at,
         {.field = name,
          .value = stored.name(),
          .message = fmt::format("rows of {} columns are no whole groups of {}", K, stored.group),
          .allowed = "activations of the workload's type, or with a scale for a whole row"});
  const ScaleTensor beside = stored.beside(x.operand.rows, K).front();
  const std::string base = tensor_names_.unused(name + "_codes");
  const TensorValue codes = new_tensor(base, Role::activation, x.rows, x.cols, at);
  const TensorValue scale = new_tensor(tensor_names_.unused(base + "_scale"), Role::activation,
                                       x.rows, ShapeSize(beside.cols), at);
  graph_.tensor(codes.operand.tensor).dtype = stored.element();
  graph_.tensor(scale.operand.tensor).dtype = beside.type;
  add_op(op_names_.unused("quantise_" + name),
         stored.scaled_within_rows() ? operators::quantise_groups : operators::quantise_rows, site,
         {x}, {codes, scale}, RowCodes{stored}, at);
  coded_.emplace_back(x.operand, CodedRows{codes, scale});
  return coded_.back().second;
}

}  // namespace fuseline
