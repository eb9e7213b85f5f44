// Back from places to rows as sum_rows, where it is known at which places the rows went.
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/rows.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_sum_places {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> places = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t each = op.attributes.as<Places>().each;
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) {
      double sum = 0;
      for (std::int64_t j = 0; j < each; ++j)
        sum += x(index_at(places, m * each + j, x.rows, op), n);
      y(m, n) = sum;
    }
}

void lower(Emitter& e, const Op& op) {
  const Value sum = e.fresh("sum");
  e.emit(SumPlaces{sum, op.reads[1], op.reads[0], op.attributes.as<Places>().each});
  e.produce(op.writes[0], sum);
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].rows; }
std::int64_t terms(const Graph&, const Op& op) { return op.attributes.as<Places>().each; }

}  // namespace
}  // namespace in_sum_places

constinit const Operator operators::sum_places{
    .name = "sum_places",
    .op_class = OpClass::pointwise,
    .locality = Locality::rows_elsewhere,
    .formula = "y[m] = sum over j < each of x[places[m * each + j]]",
    .reads = {{"x", "P", "N"}, {"places", "P", "1"}},
    .write = kY,
    .flops = per_input<1>,
    .sum_length = in_sum_places::terms,
    .reference = in_sum_places::compute,
    .lower = in_sum_places::lower,
    .extent = of_result,
    .gradient = no_gradient(kMadeLater),
    .framework = always<Implementation::vectorized>,
    .index_read = 1,
    .index_range = in_sum_places::indices};

}  // namespace fuseline
