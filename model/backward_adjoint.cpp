#include "model/backward_adjoint.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

std::size_t tensor_index(TensorId id) { return static_cast<std::size_t>(id.index); }

bool is_leaf(Role role) { return role == Role::weight || role == Role::input; }

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (!contains(names, name)) names.push_back(name);
}

// Whether the operator gives a gradient of all rows of read i's tensor. Gathered rows may be any.
bool gives_all_rows(const Op& op, std::size_t i) {
  return op.kind->index_read >= 0 || static_cast<int>(i) == op.kind->all_rows_gradient;
}

// The part of the tensor whose gradient a reader contributes to.
Operand part_of(const Graph& graph, const Op& op, std::size_t i) {
  Operand part = op.reads.at(i);
  const Operand& read = part;
  if (gives_all_rows(op, i)) {
    part.rows = graph.tensor(read.tensor).rows;
    part.at = {};
  }
  return part;
}

// Rows and columns of `inner`, a part of the tensor whose gradient `outer` is.
Operand within(Operand outer, const Operand& inner) {
  outer.col_begin += inner.col_begin;
  outer.cols = inner.cols;
  outer.rows = inner.rows;
  outer.at = inner.at;
  return outer;
}

}  // namespace

Adjoint::Adjoint(Graph forward, const BackwardOptions& options)
    : graph_(std::move(forward)), options_(options), order_(topological_order(graph_)) {
  if (options_.save_log_sum_exp) {
    for (const OpId id : order_) {
      if (graph_.op(id).kind != operators::softmax) continue;
      const Operand probs = graph_.op(id).writes[0];
      const Operand lse =
          make(graph_.op(id).name + "_lse", "[B·H·T, 1]", Dtype::fp32, probs.rows, 1);
      graph_.op(id).writes.push_back(lse);
      add_name(options_.recompute, graph_.tensor(probs.tensor).name);
      add_name(options_.recompute, graph_.tensor(graph_.op(id).reads[0].tensor).name);
    }
  }
  for (const std::string& name : options_.recompute) {
    const std::optional<TensorId> id = graph_.find_tensor(name);
    FUSELINE_ASSERT(id && graph_.producers(*id).size() == 1, "cannot recompute " + name);
  }
  find_needs();
  find_readers();
}

void Adjoint::find_needs() {
  needs_.resize(graph_.tensors().size());
  live_.resize(graph_.tensors().size());
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    const Role role = graph_.tensors()[i].role;
    needs_[i] = is_leaf(role);
    live_[i] = role == Role::output;
  }
  for (const OpId id : order_) {  // row and column numbers are not differentiable
    const Op& op = graph_.op(id);
    const int numbers = op.kind->index_read;
    if (numbers >= 0)
      needs_[tensor_index(op.reads.at(static_cast<std::size_t>(numbers)).tensor)] = false;
  }
  const auto needed = [&](const Operand& o) { return needs_[tensor_index(o.tensor)]; };
  for (const OpId id : order_) {
    const Op& op = graph_.op(id);
    if (std::any_of(op.reads.begin(), op.reads.end(), needed))
      needs_[tensor_index(op.writes[0].tensor)] = true;
  }
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    const Op& op = graph_.op(*it);
    if (!live_[tensor_index(op.writes[0].tensor)]) continue;
    for (const Operand& read : op.reads) live_[tensor_index(read.tensor)] = true;
  }
}

bool Adjoint::needs_gradient(TensorId id) const {
  const Role role = graph_.tensor(id).role;
  return role != Role::table && role != Role::cache && tensor_index(id) < needs_.size() &&
         needs_[tensor_index(id)] && live_[tensor_index(id)];
}

void Adjoint::find_readers() {
  const auto add = [&](const Operand& read, const std::string& site) -> Slice& {
    std::vector<Slice>& slices = slices_[read.tensor];
    const auto known =
        std::find_if(slices.begin(), slices.end(), [&](const Slice& s) { return s.read == read; });
    Slice& slice = known != slices.end() ? *known : slices.emplace_back();
    slice.read = read;
    ++slice.readers;
    slice.site = site;
    return slice;
  };
  for (const OpId id : order_) {
    const Op& op = graph_.op(id);
    if (!needs_gradient(op.writes[0].tensor)) continue;
    for (std::size_t i = 0; i < op.reads.size(); ++i)
      if (needs_gradient(op.reads[i].tensor)) add(part_of(graph_, op, i), op.site);
  }
  const std::size_t count = graph_.tensors().size();
  for (std::size_t i = 0; i < count; ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    if (graph_.tensor(id).role != Role::output || !needs_gradient(id)) continue;
    Tensor seed = graph_.tensor(id);
    seed.name = "d" + seed.name;
    seed.role = Role::input;
    const Operand whole = graph_.whole(id);
    const TensorId given = graph_.add_tensor(std::move(seed));
    graph_.relate(given, Relation::gradient_of, id);
    add(whole, "").parts.push_back(graph_.whole(given));
  }
  for (auto& [id, slices] : slices_)
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return std::pair(a.read.col_begin, a.read.at.begin) <
             std::pair(b.read.col_begin, b.read.at.begin);
    });
}

Graph Adjoint::run() {
  const std::size_t tensors = needs_.size();
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    op_ = graph_.op(*it);
    const TensorId result = op_.writes[0].tensor;
    if (!needs_gradient(result)) continue;
    const GradientRule& gradient_rule = op_.kind->gradient;
    if (gradient_rule.rule == nullptr)
      throw InputError({.field = op_.name,
                        .value = name_of(op_.kind),
                        .message = std::string("has no gradient: ") + gradient_rule.why_none,
                        .allowed = "its forward pass"});
    dy_ = gradient(op_.writes[0]);
    site_ = op_.site;
    gradient_rule.rule(*this);
  }
  for (std::size_t i = 0; i < tensors; ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    if (is_leaf(graph_.tensor(id).role) && needs_gradient(id)) finish_leaf(id);
  }
  Graph ordered;
  std::vector<TensorId> same;
  for (const Tensor& t : graph_.tensors()) same.push_back(ordered.add_tensor(t));
  ordered.take_relations(graph_, same);
  for (const OpId id : topological_order(graph_)) ordered.add_op(graph_.op(id));
  return ordered;
}

bool Adjoint::wants(std::size_t i) const { return needs_gradient(op_.reads.at(i).tensor); }

Adjoint::Slice& Adjoint::slice_of(std::size_t i) {
  const Operand read = part_of(graph_, op_, i);
  std::vector<Slice>& slices = slices_[read.tensor];
  const auto it =
      std::find_if(slices.begin(), slices.end(), [&](const Slice& s) { return s.read == read; });
  FUSELINE_ASSERT(it != slices.end(), graph_.tensor(read.tensor).name);
  return *it;
}

// The tensor "d" + name, made when first asked for.
Operand Adjoint::whole_gradient(TensorId id) {
  Tensor t = graph_.tensor(id);
  t.name = "d" + t.name;
  t.role = is_leaf(t.role) ? Role::output : Role::activation;
  if (const auto known = graph_.with(Relation::gradient_of, id)) return graph_.whole(*known);
  const TensorId made = graph_.add_tensor(std::move(t));
  graph_.relate(made, Relation::gradient_of, id);
  return graph_.whole(made);
}

// A tensor for the operator's own contribution: "dh_norm2".
Operand Adjoint::own_part(const Operand& part) {
  const Tensor t = graph_.tensor(part.tensor);
  std::string name = "d" + t.name + "_" + op_.name;
  if (graph_.find_tensor(name)) name += "_again";  // the operator reads the tensor twice
  const bool all = part.cols == t.cols && part.rows == t.rows;
  return make(name, all ? t.symbol : "", t.dtype, part.rows, part.cols);
}

// Whether the gradient is put together from slices that are tensors of their own: all of them whole
// columns.
bool Adjoint::concatenates(TensorId id) {
  const std::vector<Slice>& slices = slices_[id];
  return slices.size() > 1 && options_.concatenate_slices &&
         std::ranges::all_of(slices,
                             [&](const Slice& s) { return s.read.rows == graph_.tensor(id).rows; });
}

// Where the final gradient of a slice goes.
Operand Adjoint::place(const Slice& slice) {
  if (concatenates(slice.read.tensor)) return own_part(slice.read);
  return within(whole_gradient(slice.read.tensor), slice.read);
}

Operand Adjoint::target(std::size_t i) {
  Slice& slice = slice_of(i);
  const Operand to = slice.readers == 1 ? place(slice) : own_part(slice.read);
  slice.parts.push_back(to);
  return to;
}

void Adjoint::pass(std::size_t i, const Operand& gradient) {
  if (wants(i)) slice_of(i).parts.push_back(gradient);
}

// The sum over a slice's readers.
Operand Adjoint::total(Slice& slice) {
  const Tensor t = graph_.tensor(slice.read.tensor);
  FUSELINE_ASSERT(slice.parts.size() == slice.readers, t.name);
  site_ = slice.site;
  Operand sum = slice.parts[0];
  for (std::size_t i = 1; i < slice.parts.size(); ++i) {
    const bool last = i + 1 == slice.parts.size();
    const Operand to = last ? place(slice)
                            : make("d" + t.name + "_sum" + std::to_string(i), t.symbol, t.dtype,
                                   slice.read.rows, slice.read.cols);
    emit("add_d" + t.name + (last ? "" : "_" + std::to_string(i)), operators::grad_add,
         {sum, slice.parts[i]}, {to});
    sum = to;
  }
  return sum;
}

// The gradient of a part of a tensor whose readers have all been visited, each element in one
// slice. InputError: together they do not read all of it.
Operand Adjoint::gradient(const Operand& part) {
  const TensorId id = part.tensor;
  const Tensor t = graph_.tensor(id);
  std::vector<Slice*> met;
  std::vector<Operand> read;
  Bytes sizes;
  for (Slice& slice : slices_[id]) {
    if (!overlap(slice.read, part)) continue;
    met.push_back(&slice);
    read.push_back(slice.read);
    sizes += graph_.bytes(slice.read);
  }
  FUSELINE_ASSERT(distinct_bytes(graph_, read) == sizes, "slices of " + t.name + " overlap");
  read.push_back(part);
  if (distinct_bytes(graph_, read) != sizes)
    throw InputError(
        {.field = "train",
         .value = t.name,
         .message = "a part of it is read by nobody, so that its gradient is not known",
         .allowed = "operators that read all of it"});
  std::vector<Operand> parts;
  for (Slice* slice : met) {
    if (!slice->sum) slice->sum = total(*slice);
    parts.push_back(*slice->sum);
  }
  const bool whole_tensor = part.rows == t.rows && part.cols == t.cols;
  if (met.size() == 1 && met[0]->read == part) return parts[0];
  const Operand whole = whole_gradient(id);
  if (met.size() == 1 && parts[0].tensor != whole.tensor && covers(met[0]->read, part) &&
      met[0]->read == graph_.whole(id))
    return within(parts[0], part);
  if (concatenates(id) && whole_tensor) {
    FUSELINE_ASSERT(parts.size() <= operators::concat.reads.size(), t.name);
    emit("concat_d" + t.name, operators::concat, std::move(parts), {whole});
    return whole;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].tensor == whole.tensor) continue;
    const Operand to = within(whole, met[i]->read);
    emit("copy_d" + t.name, operators::cast, {parts[i]}, {to});
    met[i]->sum = to;
  }
  return within(whole, part);
}

// The gradient of an input or weight is a tensor of its own, also where it passes through.
void Adjoint::finish_leaf(TensorId id) {
  const Operand g = gradient(graph_.whole(id));
  const Operand whole = whole_gradient(id);
  if (g.tensor == whole.tensor) return;
  emit("copy_d" + graph_.tensor(id).name, operators::cast, {g}, {whole});
}

Operand Adjoint::make_like(const std::string& name, const Operand& operand) {
  const Tensor& t = graph_.tensor(operand.tensor);
  const bool all = operand == graph_.whole(operand.tensor);
  return make(name, all ? t.symbol : "", t.dtype, operand.rows, operand.cols);
}

Operand Adjoint::make(const std::string& name, const std::string& symbol, Dtype dtype,
                      std::int64_t rows, std::int64_t cols) {
  // A block may have several attentions, whose rules name their tensors alike.
  const bool taken = graph_.find_tensor(name).has_value();
  return graph_.whole(graph_.add_tensor({.name = taken ? name + "_" + op_.name : name,
                                         .symbol = symbol,
                                         .role = Role::activation,
                                         .dtype = dtype,
                                         .rows = rows,
                                         .cols = cols}));
}

void Adjoint::emit(const std::string& name, OpKind kind, std::vector<Operand> reads,
                   std::vector<Operand> writes, const Attributes& attributes) {
  const bool taken = graph_.find_op(name).has_value();
  graph_.add_op({.name = taken ? name + "_" + op_.name : name,
                 .kind = kind,
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .attributes = attributes,
                 .site = site_ + "_bwd",
                 .pass = Pass::backward});
}

Operand Adjoint::row_statistics(const std::string& norm) {
  const OpId id = *graph_.find_op(norm);
  const Op op = graph_.op(id);
  if (op.writes.size() > 1) return op.writes[1];
  const std::int64_t columns = op.kind->statistics;
  FUSELINE_ASSERT(columns > 0, norm + " has no statistics");
  const Operand stats = make(norm + "_stats", "[M, " + std::to_string(columns) + "]", Dtype::fp32,
                             op.reads[0].rows, columns);
  graph_.op(id).writes.push_back(stats);
  return stats;
}

Operand Adjoint::also_write(const std::string& name, const std::string& symbol, Dtype dtype,
                            std::int64_t rows, std::int64_t cols) {
  const OpId id = *graph_.find_op(op_.name);
  const Operand made = make(name, symbol, dtype, rows, cols);
  graph_.op(id).writes.push_back(made);
  return made;
}

Operand Adjoint::log_sum_exp() {
  return also_write(op_.name + "_lse", "[M, 1]", Dtype::fp32, op_.writes[0].rows, 1);
}

void Adjoint::leave_delta(TensorId probs, const Operand& delta) { deltas_[probs] = delta; }

const Operand* Adjoint::delta(TensorId probs) const {
  const auto it = deltas_.find(probs);
  return it == deltas_.end() ? nullptr : &it->second;
}

const Operand* Adjoint::wanted_again() const {
  const auto it = recomputed_.find(op_.writes[0].tensor);
  return it == recomputed_.end() ? nullptr : &it->second;
}

Operand Adjoint::forward_value(const Operand& operand) {
  const TensorId id = operand.tensor;
  if (!contains(options_.recompute, graph_.tensor(id).name)) return operand;
  if (!recomputed_.contains(id)) recompute(graph_.producers(id)[0], id);
  const Operand again = recomputed_.at(id);
  return within(again, operand);
}

void Adjoint::recompute(OpId producer, TensorId id) {
  const Tensor t = graph_.tensor(id);
  const Op op = graph_.op(producer);
  const Operand again = make("re_" + t.name, t.symbol, t.dtype, t.rows, t.cols);
  graph_.relate(again.tensor, Relation::recomputed_from, id);
  recomputed_[id] = again;
  if (op.kind->given_by_gradient) return;  // by the rule of its gradient, which is still to come

  Again how{op.kind, {}};
  for (const Operand& read : op.reads) how.reads.push_back(forward_value(read));
  if (op.kind->again != nullptr) op.kind->again(*this, op, how);
  const std::string site = std::exchange(site_, op.site);
  emit("re_" + op.name, how.kind, std::move(how.reads), {again}, op.attributes);
  site_ = site;
}

}  // namespace fuseline
