// Rows of a table, by token, and by position where the model has such a table.
#include "base/error.h"
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_embedding {
namespace {

using namespace reference;

// Token row, plus one add an element when there is a position row.
Flops count(const Graph& graph, const Op& op) {
  return op.reads.size() > 2 ? per_output<1>(graph, op) : Flops(0);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> ids = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<Positions>();
  for (std::int64_t m = 0; m < y.rows; ++m) {
    const std::int64_t token = static_cast<std::int64_t>(ids(m, 0));
    FUSELINE_ASSERT(token >= 0 && token < w.tensor_rows, op.name);
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = w(token, n);
    if (op.reads.size() < 3) continue;
    const View<const double> positions = read(g, in, op.reads[2]);
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) += positions(m % a.tokens, n);
  }
}

void lower(Emitter& e, const Op& op) {
  Value x = e.fresh("x");
  e.emit(Gather{x, op.reads[0], op.reads[1]});
  if (op.reads.size() > 2) x = e.map(maps::add, {x, e.table(op.reads[2])}, "x");
  e.produce(op.writes[0], x);
}

// Rows of the table that no token names have the gradient 0.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(1))
    a.emit("dw_" + op.name, operators::embedding_backward, {a.dy(), op.reads[0]}, {a.target(1)},
           op.attributes);
  if (op.reads.size() > 2 && a.wants(2))
    a.emit("dw_" + op.name + "_position", operators::embedding_backward, {a.dy()}, {a.target(2)},
           op.attributes);
}

std::int64_t indices(const Graph& graph, const Op& op) {
  return graph.tensor(op.reads[1].tensor).rows;
}

Attributes called(OperatorCall& c) { return Positions{c.workload().seq}; }

}  // namespace
}  // namespace in_embedding

constinit const Operator operators::embedding{
    .name = "embedding",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = w[ids] (+ positions)",
    .reads = {{"ids", "M", "1"}, {"w", "V", "N"}, {"positions", "T", "N", true}},
    .write = kY,
    .flops = in_embedding::count,
    .sum_length = one_term,
    .reference = in_embedding::compute,
    .lower = in_embedding::lower,
    .extent = of_result,
    .gradient = in_embedding::gradient,
    .framework = by_layout,
    .index_read = 0,
    .index_range = in_embedding::indices,
    .alone = kGathers,
    .called = in_embedding::called};

}  // namespace fuseline
