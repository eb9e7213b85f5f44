// RoPE: every pair of columns of a head turns by an angle of its row.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/rotation.h"

namespace fuseline {

namespace in_rope {
namespace {

using namespace reference;

// The table is addressed by the columns of the data, so interleaved heads take an interleaved
// table.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> cos = read(g, in, op.reads[1]);
  const View<const double> sin = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t d = op.attributes.as<Pairs>().head_width;
  const std::int64_t turned = op.attributes.as<Pairs>().turned();
  FUSELINE_ASSERT(d > 0 && turned <= d && turned % 2 == 0 && x.cols % d == 0, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const std::int64_t t = m % cos.rows;
    for (std::int64_t head = 0; head < x.cols; head += d) {
      for (std::int64_t c = turned; c < d; ++c) y(m, head + c) = x(m, head + c);
      for (std::int64_t j = 0; j < turned / 2; ++j) {
        const Pair p = pair_of(op.attributes.as<Pairs>(), j, turned / 2);
        const double a = x(m, head + p.a);
        const double b = x(m, head + p.b);
        y(m, head + p.a) = a * cos(t, p.a) - b * sin(t, p.a);
        y(m, head + p.b) = b * cos(t, p.b) + a * sin(t, p.b);
      }
    }
  }
}

void lower(Emitter& e, const Op& op) { rotate(e, op, pairs::rope); }

void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.emit("d_" + op.name, operators::rope_backward, {a.dy(), op.reads[1], op.reads[2]},
         {a.target(0)}, op.attributes);
}

// The tables are as wide as what is rotated of each head.
Attributes called(OperatorCall& c) {
  const std::int64_t d = c.whole("d", 2, c.read(0).cols);
  const std::int64_t turned = c.read(1).cols;
  if (c.read(0).cols % d != 0)
    c.refuse("heads of " + std::to_string(d) + " do not divide " + std::to_string(c.read(0).cols) +
                 " columns",
             "a width of a head that divides the columns");
  if (turned > d || turned % 2 != 0)
    c.refuse("turns " + std::to_string(turned) + " columns of each head of " + std::to_string(d) +
                 ", as many as its tables have",
             "an even number, at most a head");
  if (c.read(0).rows % c.read(1).rows != 0)
    c.refuse("has tables of " + std::to_string(c.read(1).rows) + " rows",
             "a row for each token of a sequence");
  return Pairs{.head_width = d,
               .interleaved = c.flag_or("adjacent", false),
               .rotated = turned == d ? 0 : turned};
}

}  // namespace
}  // namespace in_rope

constinit const Operator operators::rope{
    .name = "rope",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "(a, b) -> (a·cos - b·sin, b·cos + a·sin) for each pair",
    .reads = {kX, {"cos", "T", "r"}, {"sin", "T", "r"}},
    .write = kY,
    .flops = rotation_flops,
    .sum_length = one_term,
    .reference = in_rope::compute,
    .lower = in_rope::lower,
    .extent = widest,
    .gradient = in_rope::gradient,
    .framework = by_layout,
    .before_attention = true,
    .stream = StreamCost::rotation,
    .called = in_rope::called};

}  // namespace fuseline
