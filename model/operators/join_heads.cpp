// Two parts of every head side by side. The first may be the same for all heads: the rotated
// columns of a latent attention's keys.
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_join_heads {
namespace {

using namespace reference;

struct Widths {
  std::int64_t a, b;
  bool shared;
};
Widths widths_of(const Op& op) {
  const std::int64_t heads = op.attributes.as<HeadCount>().heads;
  const std::int64_t b = op.reads[1].cols / heads;
  const std::int64_t a = op.writes[0].cols / heads - b;
  return {a, b, op.reads[0].cols == a && heads > 1};
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> first = read(g, in, op.reads[0]);
  const View<const double> second = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto [a, b, shared] = widths_of(op);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t c = 0; c < y.cols; ++c) {
      const std::int64_t head = c / (a + b);
      const std::int64_t at = c % (a + b);
      y(m, c) = at < a ? first(m, (shared ? 0 : head * a) + at) : second(m, head * b + at - a);
    }
}

void lower(Emitter& e, const Op& op) {
  const auto [a, b, shared] = widths_of(op);
  Value first = -1;
  if (shared) {
    first = e.fresh("shared");
    e.emit(LoadShared{first, op.reads[0], op.attributes.as<HeadCount>().heads});
  } else {
    first = e.tile(op.reads[0]);
  }
  const Value second = e.tile(op.reads[1]);
  const Value y = e.fresh("y");
  e.emit(ConcatHalves{y, first, second, a + b, a});
  e.produce(op.writes[0], y);
}

Attributes called(OperatorCall& c) {
  const std::int64_t heads = c.whole("heads", 1, kLargestDimension);
  const bool shared = c.flag_or("shared", false);
  const std::int64_t a = c.read(0).cols;
  const std::int64_t b = c.read(1).cols;
  if ((!shared && a % heads != 0) || b % heads != 0)
    c.refuse("has columns that are not " + std::to_string(heads) + " whole heads", "a multiple");
  c.result(c.read(0).rows, (shared ? a * heads : a) + b);
  return HeadCount{heads};
}

// The columns of each part; those that all heads share add up.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  const auto [first, second, shared] = widths_of(op);
  const std::int64_t width = first + second;
  if (a.wants(1))
    a.emit("d_" + op.name + "_second", operators::head_part, {a.dy()}, {a.target(1)},
           HeadPart{{width, first, 1, second}});
  if (a.wants(0))
    a.emit("d_" + op.name + "_first", shared ? operators::head_part_sum : operators::head_part,
           {a.dy()}, {a.target(0)}, HeadPart{{width, 0, 1, first}});
}

}  // namespace
}  // namespace in_join_heads

constinit const Operator operators::join_heads{
    .name = "join_heads",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "y = (a, b) of each head, a perhaps the same for all",
    .reads = {{"a", "M", "A"}, {"b", "M", "C"}},
    .write = kY,
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_join_heads::compute,
    .lower = in_join_heads::lower,
    .extent = of_result,
    .gradient = in_join_heads::gradient,
    .framework = always<Implementation::concat>,
    .alone = "puts parts of heads side by side",
    .columns = ColumnOrder::within_heads,
    .called = in_join_heads::called};

}  // namespace fuseline
