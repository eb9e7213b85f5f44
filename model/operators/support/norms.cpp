#include "model/operators/support/norms.h"

#include "model/operators/all_operators.h"
#include "model/operators/support/view.h"
#include "model/primitives/functions.h"

namespace fuseline {

using namespace reference;

double normalised(const View<const double>& x, const View<const double>& stats, std::int64_t m,
                  std::int64_t n) {
  const double scaled = stats(m, 0) * x(m, n);
  return stats.cols == 2 ? scaled - stats(m, 1) : scaled;
}

Value normalised(Emitter& e, Value x, const Operand& stats) {
  const Value r = e.per_row(column(stats, 0), "r");
  const Value scaled = e.map(maps::mul, {x, r}, "z");
  if (stats.cols == 1) return scaled;
  const Value rmu = e.per_row(column(stats, 1), "rmu");
  return e.map(maps::sub, {scaled, rmu}, "z");
}

Flops normalising_flops(const Op& op, std::size_t stats) {
  return checked_product<Flops>(op.reads[0].rows, op.reads[0].cols, op.reads[stats].cols);
}

void norm_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<const double> stats = read(g, in, op.reads[3]);
  const View<double> dx = write(g, out, op.writes[0]);
  const double width = static_cast<double>(x.cols);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double mean = 0;
    double projection = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) {
      const double gradient = dy(m, n) * w(0, n);
      if (stats.cols == 2) mean += gradient / width;
      projection += gradient * normalised(x, stats, m, n) / width;
    }
    for (std::int64_t n = 0; n < x.cols; ++n)
      dx(m, n) =
          stats(m, 0) * (dy(m, n) * w(0, n) - mean - normalised(x, stats, m, n) * projection);
  }
}

void norm_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value z = normalised(e, x, op.reads[3]);
  const Value w = e.per_col(op.reads[2], "g");
  const Value g = e.map(maps::mul, {dy, w}, "dyg");
  const Value product = e.map(maps::mul, {g, z}, "p");
  const Value c = e.row_reduce(reductions::mean, product, "c");
  const Value along = e.map(maps::mul, {z, c}, "zc");
  Value inner = e.map(maps::sub, {g, along}, "d");
  if (op.reads[3].cols == 2) {
    const Value mean = e.row_reduce(reductions::mean, g, "m");
    inner = e.map(maps::sub, {inner, mean}, "d");
  }
  const Value r = e.per_row(column(op.reads[3], 0), "r");
  e.produce(op.writes[0], e.map(maps::mul, {inner, r}, "dx"));
}

void norm_gradient(Adjoint& a, OpKind kind) {
  const Op& op = a.op();
  const Operand stats = a.row_statistics(op.name);
  const Operand x = a.forward_value(op.reads[0]);
  if (a.wants(0))
    a.emit("d_" + op.name, kind, {a.dy(), x, op.reads[1], stats}, {a.target(0)}, op.attributes);
  if (a.wants(1))
    a.emit("dw_" + op.name, operators::norm_weight_grad, {a.dy(), x, stats}, {a.target(1)},
           op.attributes);
}

void norm_again(Adjoint& a, const Op& op, Again& again) {
  again.kind = operators::norm_apply;
  again.reads.insert(again.reads.begin() + 1, a.row_statistics(op.name));
}

}  // namespace fuseline
