// One number a row back to its place in a matrix: the transpose of take_numbers, whose places are
// those of a permutation.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/rows.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_place_numbers {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> order = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t p = 0; p < x.rows; ++p) {
    const std::int64_t place = index_at(order, p, y.rows * y.cols, op);
    y(place / y.cols, place % y.cols) = x(p, 0);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value numbers = e.fresh("placed");
  e.emit(PlaceNumbers{numbers, op.reads[1], op.reads[0], op.writes[0].cols});
  e.produce(op.writes[0], numbers);
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].rows; }

// PyTorch casts the numbers from the type of the rows, and fills what it puts them into with zeros.
FrameworkLaunches framework_launches(const Graph&, const Op&, bool generated) {
  LaunchList list;
  list.add_short({"zeros"});
  if (!generated) list.add_short({"cast"});
  return std::move(list).beside();
}

}  // namespace
}  // namespace in_place_numbers

constinit const Operator operators::place_numbers{
    .name = "place_numbers",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "the number at place order[p] of y = x[p]",
    .reads = {{"x", "P", "1"}, {"order", "P", "1"}},
    .write = OperandSpec{"y", "M", "K"},
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_place_numbers::compute,
    .lower = in_place_numbers::lower,
    .extent = of_result,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::vectorized>,
    .index_read = 1,
    .index_range = in_place_numbers::indices,
    .alone = "puts numbers at their places",
    .scatters = true,
    .framework_launches = in_place_numbers::framework_launches};

}  // namespace fuseline
