// A product for every head with a matrix of its own: how latent attention moves its queries into
// the space of the cache, and its result out of it. Policies leave it alone as they leave
// attention's own products: its class says so.
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_head_linear {
namespace {

using namespace reference;

struct Shape {
  std::int64_t heads, out, in;  // columns of a head
};
Shape shape_of(const Op& op) {
  const std::int64_t heads = op.attributes.as<HeadCount>().heads;
  return {heads, op.writes[0].cols / heads, op.reads[0].cols / heads};
}

Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(2, op.reads[0].rows, op.writes[0].cols, shape_of(op).in);
}

std::int64_t terms(const Graph&, const Op& op) { return shape_of(op).in; }

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const Shape s = shape_of(op);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.in; ++k) sum += x(m, n / s.out * s.in + k) * w(n, k);
      y(m, n) = sum;
    }
}

void mainloop(Emitter& e, const Op& op, bool) {
  const Shape s = shape_of(op);
  GemmMainloop m{op.reads[0], op.reads[1]};
  m.M = op.reads[0].rows;
  m.N = s.out;
  m.K = s.in;
  m.batch = s.heads;
  e.set_mainloop(m, m.N);
  e.produce_result(op.writes[0]);
}

Attributes called(OperatorCall& c) {
  const std::int64_t heads = c.whole("heads", 1, kLargestDimension);
  const Operand& x = c.read(0);
  const Operand& w = c.read(1);
  if (x.cols % heads != 0 || w.rows % heads != 0 || x.cols / heads != w.cols)
    c.refuse("needs a weight [heads · N, K] with K columns of x in each of " +
                 std::to_string(heads) + " heads",
             "x of " + std::to_string(heads * w.cols) + " columns");
  c.result(x.rows, w.rows);
  return HeadCount{heads};
}

}  // namespace
}  // namespace in_head_linear

constinit const Operator operators::head_linear{
    .name = "head_linear",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "y_h = x_h w_h^T for each head h",
    .reads = {{"x", "M", "C"}, {"w", "N", "K"}},
    .write = kY,
    .flops = in_head_linear::count,
    .sum_length = in_head_linear::terms,
    .reference = in_head_linear::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient =
        no_gradient("only decode moves heads into the space of the cache, and it is not trained"),
    .framework = never_alone,
    .mainloop = in_head_linear::mainloop,
    .columns = ColumnOrder::lost,
    .called = in_head_linear::called};

}  // namespace fuseline
