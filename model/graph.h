// Operators and tensors of a block: a directed acyclic graph. The algorithms run on Boost.Graph
// (graph.cpp).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/attributes.h"
#include "model/config/dtype.h"

namespace fuseline {

struct TensorId {
  std::int32_t index = -1;
  friend constexpr auto operator<=>(TensorId, TensorId) = default;
};
struct OpId {
  std::int32_t index = -1;
  friend constexpr auto operator<=>(OpId, OpId) = default;
};

enum class Role : std::uint8_t { input, weight, table, cache, activation, output };

// A dense row-major matrix [rows, cols]. Vectors of length M are [M, 1], of length N are [1, N].
// Tensors of more dimensions have the others' product as rows, and say which they are.
struct Tensor {
  std::string name{};    // "qkv", "w_qkv"
  std::string symbol{};  // shape in shape letters: "[M, 3D]"
  Role role = Role::activation;
  Dtype dtype = Dtype::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int64_t> outer{};  // dimensions whose product is rows: experts and their rows
  std::string of_next_layer{};  // a weight of the next layer that this block uses: the name that it
                                // has there; empty: the weight is this layer's

  [[nodiscard]] Bytes bytes() const { return checked_product<Bytes>(rows, cols, size_of(dtype)); }
};

// Where an operand's rows lie in its tensor: in runs of `run` rows, each beginning `step` rows
// after the one before. run = 0: all of them behind each other. Tokens of one stream of a joint
// sequence, the new rows of every sequence's cache and the rows of one expert are such runs.
struct RowRuns {
  std::int64_t begin = 0;  // row of the tensor that is the operand's first
  std::int64_t run = 0;
  std::int64_t step = 0;

  [[nodiscard]] std::int64_t row(std::int64_t r) const {
    return run == 0 ? begin + r : begin + r / run * step + r % run;
  }
  friend bool operator==(const RowRuns&, const RowRuns&) = default;
};

// The part of a tensor that an operator touches: `rows` rows of columns [col_begin, col_begin +
// cols). A slice narrower than its tensor is strided in memory.
struct Operand {
  TensorId tensor;
  std::int64_t col_begin = 0;
  std::int64_t cols = 0;
  std::int64_t rows = 0;
  RowRuns at{};

  [[nodiscard]] std::int64_t tensor_row(std::int64_t r) const { return at.row(r); }
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Whether two operands share elements.
bool overlap(const Operand& a, const Operand& b);
// Whether they are the same rows of one tensor, in the same order.
bool same_rows(const Operand& a, const Operand& b);
// Whether all elements of `inner` are elements of `outer`.
bool covers(const Operand& outer, const Operand& inner);

struct Operator;      // model/operators/operator.h
struct BlockProgram;  // model/programs/block_programs.h

// Which operator it is: a handle on its description. The descriptions are constants of namespace
// `operators` (model/operators/all_operators.h); a description from elsewhere works too.
class OpKind {
 public:
  constexpr OpKind() = default;
  constexpr OpKind(const Operator& description) : description_(&description) {}

  [[nodiscard]] constexpr bool known() const { return description_ != nullptr; }
  const Operator& operator*() const { return *operator->(); }
  const Operator* operator->() const;  // asserts known()
  friend constexpr bool operator==(OpKind, OpKind) = default;

 private:
  const Operator* description_ = nullptr;
};

enum class Pass : std::uint8_t { forward, backward };

struct Op {
  std::string name{};  // "qkv", "rope_q"
  OpKind kind{};
  std::vector<Operand> reads{};  // in the order that the operator states
  std::vector<Operand> writes{};
  Attributes attributes{};
  std::string site{};  // the block step it belongs to: norm1 qkv rope kvcache attention oproj
                       // residual1 ...; of the backward pass the same with "_bwd"
  Pass pass = Pass::forward;
  bool inlined = false;  // a cheap value, which every loop that reads it computes again
};

// What one tensor is to another of its graph.
enum class Relation : std::uint8_t {
  gradient_of,            // the derivative of the loss by that tensor
  carried_to_next_layer,  // an output that is that input of the next of equal layers
  recomputed_from,        // that forward result, made again in the backward pass
};
struct Related {
  TensorId tensor;
  Relation relation = Relation::gradient_of;
  TensorId to;
};

class Graph {
 public:
  TensorId add_tensor(Tensor tensor);
  OpId add_op(Op op);  // asserts that its operands exist and lie inside their tensors

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const;
  [[nodiscard]] const Op& op(OpId id) const;
  Op& op(OpId id);
  Tensor& tensor(TensorId id);
  [[nodiscard]] std::optional<TensorId> find_tensor(const std::string& name) const;
  [[nodiscard]] std::optional<OpId> find_op(const std::string& name) const;

  // Records what `tensor` is to `to`. A tensor has at most one of each relation.
  void relate(TensorId tensor, Relation relation, TensorId to);
  [[nodiscard]] const std::vector<Related>& relations() const { return relations_; }
  // related(): the tensor to which `tensor` has that relation. with(): the tensor that has it to
  // `to`.
  [[nodiscard]] std::optional<TensorId> related(TensorId tensor, Relation relation) const;
  [[nodiscard]] std::optional<TensorId> with(Relation relation, TensorId to) const;
  // Copies the relations of `from`, whose tensor i is moved[i] in this graph; an id without an
  // index means that this graph does not have the tensor.
  void take_relations(const Graph& from, std::span<const TensorId> moved);

  // The graph without a backward pass from which this one with a backward pass was derived; null
  // when it has none. The two have tensors and operators of the same names, not the same ids.
  [[nodiscard]] const Graph* forward() const { return forward_.get(); }
  void derived_from(Graph forward);

  // Programs of a person's own that compute some operators of the block in every plan.
  [[nodiscard]] const std::vector<std::shared_ptr<const BlockProgram>>& programs() const {
    return programs_;
  }
  void computed_by(std::shared_ptr<const BlockProgram> program);
  [[nodiscard]] Graph without_programs() const;

  // Operators that write / read any part of the tensor, in insertion order.
  [[nodiscard]] std::vector<OpId> producers(TensorId id) const;
  [[nodiscard]] std::vector<OpId> consumers(TensorId id) const;

  // The whole tensor as an operand.
  [[nodiscard]] Operand whole(TensorId id) const;
  [[nodiscard]] Operand columns(TensorId id, std::int64_t begin, std::int64_t count) const;
  // All columns of `count` rows behind each other.
  [[nodiscard]] Operand rows(TensorId id, std::int64_t begin, std::int64_t count) const;
  // All rows of the entry `index` of the tensor's first dimension.
  [[nodiscard]] Operand entry(TensorId id, std::int64_t index) const;
  // The tensor's rows are `parts` equal parts: rows [begin, begin + count) of each.
  [[nodiscard]] Operand rows_of_parts(TensorId id, std::int64_t parts, std::int64_t begin,
                                      std::int64_t count) const;
  [[nodiscard]] Bytes bytes(const Operand& operand) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
  std::vector<Related> relations_;
  std::shared_ptr<const Graph> forward_;  // never changed: copies share it
  std::vector<std::shared_ptr<const BlockProgram>> programs_;
};

// One producer-consumer pair of operators and the tensor between them (overlapping slices only).
struct Edge {
  OpId from;
  OpId to;
  TensorId tensor;
};

std::vector<Edge> edges(const Graph& graph);

// Operators in dependency order, stable (insertion order among the free ones). InternalError on a
// cycle.
std::vector<OpId> topological_order(const Graph& graph);

// The order of groups after contracting each into one node; empty when contraction makes a cycle.
std::optional<std::vector<std::size_t>> order_groups(const Graph& graph,
                                                     std::span<const std::vector<OpId>> groups);

const char* name_of(OpKind);
const char* name_of(Role);
const char* name_of(Pass);

}  // namespace fuseline
