// One number a row back to its place in a matrix as place_numbers, where it is known which row has
// the number of each place.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/rows.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_numbers_at {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> places = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n)
      y(m, n) = x(index_at(places, m * y.cols + n, x.rows, op), 0);
}

void lower(Emitter& e, const Op& op) {
  const Value numbers = e.fresh("numbers");
  e.emit(NumbersAt{numbers, op.reads[1], op.reads[0], op.writes[0].cols});
  e.produce(op.writes[0], numbers);
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].rows; }

}  // namespace
}  // namespace in_numbers_at

constinit const Operator operators::numbers_at{.name = "numbers_at",
                                               .op_class = OpClass::pointwise,
                                               .locality = Locality::rows_elsewhere,
                                               .formula = "y[m, n] = x[places[m * N + n]]",
                                               .reads = {{"x", "P", "1"}, {"places", "P", "1"}},
                                               .write = kY,
                                               .flops = per_output<0>,
                                               .sum_length = one_term,
                                               .reference = in_numbers_at::compute,
                                               .lower = in_numbers_at::lower,
                                               .extent = of_result,
                                               .gradient = no_gradient(kMadeLater),
                                               .framework = always<Implementation::vectorized>,
                                               .index_read = 1,
                                               .index_range = in_numbers_at::indices};

}  // namespace fuseline
