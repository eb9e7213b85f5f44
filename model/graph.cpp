#include "model/graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "base/error.h"
#include "model/wiring.h"

namespace fuseline {

const Operator* OpKind::operator->() const {
  FUSELINE_ASSERT(known(), "an operator without a kind");
  return description_;
}

namespace {

using Dag = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

std::size_t index_of(TensorId id) { return static_cast<std::size_t>(id.index); }
std::size_t index_of(OpId id) { return static_cast<std::size_t>(id.index); }
OpId op_id(std::size_t i) { return OpId{static_cast<std::int32_t>(i)}; }

std::int64_t run_of(const Operand& o) { return o.at.run == 0 ? o.rows : o.at.run; }

// The part of the tensor's rows between the first and the last of one run of `a`, in runs of `b`:
// whether some (`all` = every) row of the run is a row of b.
bool meets(const Operand& b, std::int64_t begin, std::int64_t end, bool all) {
  const std::int64_t run = run_of(b);
  const std::int64_t step = b.at.run == 0 ? std::max<std::int64_t>(1, run) : b.at.step;
  const std::int64_t runs = b.rows / run;
  // The last run that begins at or before the asked rows' first, and the one behind it.
  const std::int64_t before =
      begin < b.at.begin ? -1 : std::min(runs - 1, (begin - b.at.begin) / step);
  const auto inside = [&](std::int64_t i) {
    if (i < 0 || i >= runs) return false;
    const std::int64_t first = b.at.begin + i * step;
    return all ? first <= begin && end <= first + run : first < end && begin < first + run;
  };
  return inside(before) || inside(before + 1);
}

bool rows_meet(const Operand& a, const Operand& b, bool all) {
  const std::int64_t run = run_of(a);
  for (std::int64_t r = 0; r < a.rows; r += run) {
    const bool met = meets(b, a.at.row(r), a.at.row(r) + run, all);
    if (met != all) return met;
  }
  return all;
}

bool touches(const std::vector<Operand>& operands, TensorId id) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& o) { return o.tensor == id; });
}

// The vertices of an acyclic graph in dependency order, the smallest free index first. Shorter than
// the graph when there is a cycle.
std::vector<std::size_t> stable_order(const Dag& dag) {
  const std::size_t count = boost::num_vertices(dag);
  std::vector<std::size_t> waiting(count);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < count; ++v) {
    waiting[v] = boost::in_degree(v, dag);
    if (waiting[v] == 0) ready.push(v);
  }
  std::vector<std::size_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::size_t v = ready.top();
    ready.pop();
    order.push_back(v);
    const auto [begin, end] = boost::out_edges(v, dag);
    for (auto e = begin; e != end; ++e) {
      const std::size_t target = boost::target(*e, dag);
      if (--waiting[target] == 0) ready.push(target);
    }
  }
  return order;
}

}  // namespace

bool overlap(const Operand& a, const Operand& b) {
  return a.tensor == b.tensor && a.col_begin < b.col_begin + b.cols &&
         b.col_begin < a.col_begin + a.cols && rows_meet(a, b, false);
}

bool same_rows(const Operand& a, const Operand& b) {
  return a.tensor == b.tensor && a.rows == b.rows && a.at == b.at;
}

bool covers(const Operand& outer, const Operand& inner) {
  return outer.tensor == inner.tensor && outer.col_begin <= inner.col_begin &&
         inner.col_begin + inner.cols <= outer.col_begin + outer.cols &&
         (same_rows(outer, inner) || rows_meet(inner, outer, true));
}

TensorId Graph::add_tensor(Tensor tensor) {
  FUSELINE_ASSERT(!tensor.name.empty() && !find_tensor(tensor.name), tensor.name);
  FUSELINE_ASSERT(tensor.rows > 0 && tensor.cols > 0, tensor.name);
  if (!tensor.outer.empty())
    FUSELINE_ASSERT(std::accumulate(tensor.outer.begin(), tensor.outer.end(), std::int64_t{1},
                                    std::multiplies<>()) == tensor.rows,
                    tensor.name + ": its dimensions are not its rows");
  static_cast<void>(tensor.bytes());  // overflow of the byte count is the user's mistake
  tensors_.push_back(std::move(tensor));
  return TensorId{static_cast<std::int32_t>(tensors_.size() - 1)};
}

OpId Graph::add_op(Op op) {
  FUSELINE_ASSERT(!op.name.empty() && !find_op(op.name), op.name);
  FUSELINE_ASSERT(!op.writes.empty(), op.name);
  for (const auto* operands : {&op.reads, &op.writes}) {
    for (const Operand& o : *operands) {
      const Tensor& t = tensor(o.tensor);
      FUSELINE_ASSERT(o.cols > 0 && o.col_begin >= 0 && o.col_begin + o.cols <= t.cols,
                      op.name + ": columns of " + t.name);
      FUSELINE_ASSERT(o.rows > 0 && o.at.begin >= 0 && o.tensor_row(o.rows - 1) < t.rows,
                      op.name + ": rows of " + t.name);
      FUSELINE_ASSERT(
          o.at.run >= 0 && (o.at.run == 0 || (o.rows % o.at.run == 0 && o.at.run < o.at.step)),
          op.name + ": runs of rows of " + t.name);
    }
  }
  ops_.push_back(std::move(op));
  return op_id(ops_.size() - 1);
}

const Tensor& Graph::tensor(TensorId id) const {
  FUSELINE_ASSERT(id.index >= 0 && index_of(id) < tensors_.size(), "no such tensor");
  return tensors_[index_of(id)];
}

Tensor& Graph::tensor(TensorId id) {
  FUSELINE_ASSERT(id.index >= 0 && index_of(id) < tensors_.size(), "no such tensor");
  return tensors_[index_of(id)];
}

const Op& Graph::op(OpId id) const {
  FUSELINE_ASSERT(id.index >= 0 && index_of(id) < ops_.size(), "no such operator");
  return ops_[index_of(id)];
}

Op& Graph::op(OpId id) {
  FUSELINE_ASSERT(id.index >= 0 && index_of(id) < ops_.size(), "no such operator");
  return ops_[index_of(id)];
}

std::optional<TensorId> Graph::find_tensor(const std::string& name) const {
  const auto it = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const Tensor& t) { return t.name == name; });
  if (it == tensors_.end()) return std::nullopt;
  return TensorId{static_cast<std::int32_t>(it - tensors_.begin())};
}

std::optional<OpId> Graph::find_op(const std::string& name) const {
  const auto it =
      std::find_if(ops_.begin(), ops_.end(), [&](const Op& o) { return o.name == name; });
  if (it == ops_.end()) return std::nullopt;
  return OpId{static_cast<std::int32_t>(it - ops_.begin())};
}

void Graph::derived_from(Graph forward) {
  forward_ = std::make_shared<const Graph>(std::move(forward));
}

void Graph::computed_by(std::shared_ptr<const BlockProgram> program) {
  programs_.push_back(std::move(program));
}

Graph Graph::without_programs() const {
  Graph plain = *this;
  plain.programs_.clear();
  return plain;
}

void Graph::relate(TensorId tensor, Relation relation, TensorId to) {
  FUSELINE_ASSERT(index_of(tensor) < tensors_.size() && index_of(to) < tensors_.size(),
                  "a relation to no tensor");
  FUSELINE_ASSERT(!related(tensor, relation), tensors_[index_of(tensor)].name);
  relations_.push_back({tensor, relation, to});
}

std::optional<TensorId> Graph::related(TensorId tensor, Relation relation) const {
  for (const Related& r : relations_)
    if (r.tensor == tensor && r.relation == relation) return r.to;
  return std::nullopt;
}

std::optional<TensorId> Graph::with(Relation relation, TensorId to) const {
  for (const Related& r : relations_)
    if (r.to == to && r.relation == relation) return r.tensor;
  return std::nullopt;
}

void Graph::take_relations(const Graph& from, std::span<const TensorId> moved) {
  for (const Related& r : from.relations_) {
    const TensorId tensor = moved[index_of(r.tensor)];
    const TensorId to = moved[index_of(r.to)];
    if (tensor.index >= 0 && to.index >= 0) relate(tensor, r.relation, to);
  }
}

std::vector<OpId> Graph::producers(TensorId id) const {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (touches(ops_[i].writes, id)) found.push_back(op_id(i));
  return found;
}

std::vector<OpId> Graph::consumers(TensorId id) const {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (touches(ops_[i].reads, id)) found.push_back(op_id(i));
  return found;
}

Operand Graph::whole(TensorId id) const {
  const Tensor& t = tensor(id);
  return Operand{.tensor = id, .col_begin = 0, .cols = t.cols, .rows = t.rows};
}

Operand Graph::columns(TensorId id, std::int64_t begin, std::int64_t count) const {
  const Tensor& t = tensor(id);
  FUSELINE_ASSERT(begin >= 0 && count > 0 && begin + count <= t.cols, t.name);
  return Operand{.tensor = id, .col_begin = begin, .cols = count, .rows = t.rows};
}

Operand Graph::rows(TensorId id, std::int64_t begin, std::int64_t count) const {
  const Tensor& t = tensor(id);
  FUSELINE_ASSERT(begin >= 0 && count > 0 && begin + count <= t.rows, t.name);
  return Operand{.tensor = id, .col_begin = 0, .cols = t.cols, .rows = count, .at = {begin}};
}

Operand Graph::entry(TensorId id, std::int64_t index) const {
  const Tensor& t = tensor(id);
  const std::int64_t count = t.outer.empty() ? t.rows : t.outer.front();
  return rows(id, index * (t.rows / count), t.rows / count);
}

Operand Graph::rows_of_parts(TensorId id, std::int64_t parts, std::int64_t begin,
                             std::int64_t count) const {
  const Tensor& t = tensor(id);
  FUSELINE_ASSERT(parts > 0 && t.rows % parts == 0, t.name);
  const std::int64_t part = t.rows / parts;
  FUSELINE_ASSERT(begin >= 0 && count > 0 && begin + count <= part, t.name);
  Operand o = whole(id);
  o.rows = parts * count;
  o.at.begin = begin;
  if (parts > 1 && count < part) o.at = {begin, count, part};
  return o;
}

Bytes Graph::bytes(const Operand& operand) const {
  return checked_product<Bytes>(operand.rows, operand.cols, size_of(tensor(operand.tensor).dtype));
}

std::vector<Edge> edges(const Graph& graph) {
  const std::vector<Op>& ops = graph.ops();
  std::vector<std::vector<std::pair<std::size_t, const Operand*>>> writers(graph.tensors().size());
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const Operand& w : ops[i].writes) writers[index_of(w.tensor)].emplace_back(i, &w);

  std::vector<Edge> result;
  for (std::size_t to = 0; to < ops.size(); ++to) {
    const std::size_t first_of_op = result.size();
    for (const Operand& read : ops[to].reads) {
      for (const auto& [from, write] : writers[index_of(read.tensor)]) {
        if (from == to || !overlap(*write, read)) continue;
        const OpId producer = op_id(from);
        const bool known = std::any_of(
            result.begin() + static_cast<std::ptrdiff_t>(first_of_op), result.end(),
            [&](const Edge& e) { return e.from == producer && e.tensor == read.tensor; });
        if (!known) result.push_back({producer, op_id(to), read.tensor});
      }
    }
  }
  return result;
}

namespace {

std::vector<OpId> order_along(const Graph& graph, const std::vector<Edge>& edges) {
  Dag dag(graph.ops().size());
  for (const Edge& e : edges) boost::add_edge(index_of(e.from), index_of(e.to), dag);
  const std::vector<std::size_t> order = stable_order(dag);
  FUSELINE_ASSERT(order.size() == graph.ops().size(), "the graph has a cycle");
  std::vector<OpId> result;
  result.reserve(order.size());
  for (const std::size_t v : order) result.push_back(op_id(v));
  return result;
}

}  // namespace

std::vector<OpId> topological_order(const Graph& graph) { return order_along(graph, edges(graph)); }

std::optional<std::vector<std::size_t>> order_groups(const Graph& graph,
                                                     std::span<const std::vector<OpId>> groups) {
  // Vertices: the groups, then each operator that is in no group.
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> vertex(graph.ops().size(), kNone);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const OpId id : groups[g]) {
      FUSELINE_ASSERT(vertex[index_of(id)] == kNone, graph.op(id).name + " is in two groups");
      vertex[index_of(id)] = g;
    }
  }
  std::size_t count = groups.size();
  for (std::size_t& v : vertex)
    if (v == kNone) v = count++;

  Dag dag(count);
  for (const Edge& e : edges(graph)) {
    const std::size_t from = vertex[index_of(e.from)];
    const std::size_t to = vertex[index_of(e.to)];
    if (from != to) boost::add_edge(from, to, dag);
  }
  std::vector<std::size_t> order = stable_order(dag);
  if (order.size() != count) return std::nullopt;
  std::erase_if(order, [&](std::size_t v) { return v >= groups.size(); });
  return order;
}

Wiring::Wiring(const Graph& graph)
    : edges(fuseline::edges(graph)), order(order_along(graph, edges)) {}

const char* name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::weight:
      return "weight";
    case Role::table:
      return "table";
    case Role::cache:
      return "cache";
    case Role::activation:
      return "activation";
    case Role::output:
      return "output";
  }
  FUSELINE_ASSERT(false, "unknown role");
}

const char* name_of(Pass pass) { return pass == Pass::forward ? "forward" : "backward"; }

}  // namespace fuseline
