// The gradient of a norm without a weight; the rows are measured again.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/normalising.h"

namespace fuseline {

namespace in_normalise_backward {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  return op.attributes.as<Normalise>().centred ? per_row<11, 6>(graph, op)
                                               : per_row<8, 4>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> dx = write(g, out, op.writes[0]);
  const auto& norm = op.attributes.as<Normalise>();
  const double width = static_cast<double>(x.cols);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const RowMoments of = row_moments(x, norm, m);
    double mean = 0;
    double along = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) {
      if (norm.centred) mean += dy(m, n) / width;
      along += dy(m, n) * (x(m, n) - of.mean) * of.r / width;
    }
    for (std::int64_t n = 0; n < x.cols; ++n)
      dx(m, n) = of.r * (dy(m, n) - mean - (x(m, n) - of.mean) * of.r * along);
  }
}

void lower(Emitter& e, const Op& op) {
  const auto& norm = op.attributes.as<Normalise>();
  const Value dy = e.tile(op.reads[0]);
  const RowScale of = row_scale_of(e, e.tile(op.reads[1]), op.reads[0].cols, norm);
  const Value z = e.map(maps::mul, {of.centred, of.r}, "z");
  const Value product = e.map(maps::mul, {dy, z}, "p");
  const Value along = e.map(maps::mul, {z, e.row_reduce(reductions::mean, product, "c")}, "zc");
  Value inner = e.map(maps::sub, {dy, along}, "d");
  if (norm.centred) inner = e.map(maps::sub, {inner, e.row_reduce(reductions::mean, dy, "m")}, "d");
  e.produce(op.writes[0], e.map(maps::mul, {inner, of.r}, "dx"));
}

}  // namespace
}  // namespace in_normalise_backward

constinit const Operator operators::normalise_backward{
    .name = "normalise_backward",
    .op_class = OpClass::norm,
    .locality = Locality::full_row,
    .formula = "dx = r·(dy - mean dy - z·mean(dy·z)), z normalised; without the means for RMSNorm",
    .reads = {kDy, kX},
    .write = kDx,
    .flops = in_normalise_backward::count,
    .sum_length = input_columns,
    .reference = in_normalise_backward::compute,
    .lower = in_normalise_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::row_norm>,
    .stream = StreamCost::welford};

}  // namespace fuseline
