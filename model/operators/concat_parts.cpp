// Columns of every head of one operand beside those of another, a step of a rotation whose pairs
// are adjacent or which turns only a part of each head.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_concat_parts {
namespace {

using namespace reference;

// Columns that the first operand gives to every group of the result.
std::int64_t share_of_first(const Op& op) {
  const std::int64_t group = op.attributes.as<HeadPart>().joined;
  FUSELINE_ASSERT(group > 0 && op.writes[0].cols % group == 0, op.name);
  return group * op.reads[0].cols / op.writes[0].cols;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> n = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const HeadPart& head = op.attributes.as<HeadPart>();
  const std::int64_t of_n = share_of_first(op);
  const std::int64_t of_x = head.joined - of_n;
  FUSELINE_ASSERT(head.part.fits(x.cols) && n.cols + head.part.cols(x.cols) == y.cols, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t c = 0; c < y.cols; ++c) {
      const std::int64_t group = c / head.joined;
      const std::int64_t at = c % head.joined;
      const bool first = head.behind ? at < of_n : at >= of_x;
      const std::int64_t own = head.behind == first ? at : at - (first ? of_x : of_n);
      y(m, c) = first ? n(m, group * of_n + own) : x(m, head.part.column(group * of_x + own));
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const HeadPart& head = op.attributes.as<HeadPart>();
  const Value n = e.tile(op.reads[0]);
  const Value x = e.part(op.reads[1], head.part, "x");
  const std::int64_t of_n = share_of_first(op);
  const Value y = e.fresh("y");
  e.emit(head.behind ? ConcatHalves{y, n, x, head.joined, of_n}
                     : ConcatHalves{y, x, n, head.joined, head.joined - of_n});
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_concat_parts

constinit const Operator operators::concat_parts{
    .name = "concat_parts",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "y = (n, some columns of x) of each head, or the other way round",
    .reads = {{"n", "M", "C"}, {"x", "M", "W"}},
    .write = kY,
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_concat_parts::compute,
    .lower = in_concat_parts::lower,
    .extent = of_result,
    .gradient = no_gradient(kMadeLater),
    .framework = always<Implementation::concat>,
    .part_read = 1};

}  // namespace fuseline
