// Rows in groups, each times a weight of its own: the experts of a mixture, whose tokens lie behind
// each other.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"
#include "model/operators/support/weight_scales.h"

namespace fuseline {

namespace in_grouped_gemm {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const GemmShape shape = gemm_shape(op);
  const std::vector<double> x = rows_in_numbers(g, in, op);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const WeightScales scales(g, in, op);
  std::vector<double> of_n(static_cast<std::size_t>(shape.K));
  std::int64_t begin = 0;
  for (std::size_t group = 0; group < shape.groups.size(); ++group) {
    const auto index = static_cast<std::int64_t>(group);
    const std::int64_t end = begin + shape.groups[group];
    for (std::int64_t n = 0; n < shape.N; ++n) {
      if (shape.b_is_kn)
        for (std::int64_t k = 0; k < shape.K; ++k)
          of_n[static_cast<std::size_t>(k)] = w(index * shape.K + k, n);
      else
        std::copy_n(&w(index * shape.N + n, 0), shape.K, of_n.data());
      scales.dequantise(index, n, of_n.data());
      for (std::int64_t row = begin; row < end; ++row) {
        double sum = 0;
        for (std::int64_t k = 0; k < shape.K; ++k)
          sum += x[static_cast<std::size_t>(row * shape.K + k)] * of_n[static_cast<std::size_t>(k)];
        y(row, n) = sum;
      }
    }
    begin = end;
  }
  FUSELINE_ASSERT(begin == y.rows, op.name + ": its groups are not its rows");
}

// The library first writes where each group's operands begin.
FrameworkLaunches framework_launches(const Graph&, const Op&, bool) {
  LaunchList list;
  list.add_short({"prepare"});
  return std::move(list).beside();
}

// dw_g = dy_g^T x_g of every group, zeros of those that have no rows, then dx = dy w_g.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  const auto& rows = op.attributes.as<RaggedRows>();
  FUSELINE_ASSERT(!rows.weight.quantised() && !rows.b_is_kn, op.name);
  if (a.wants(1)) {
    const Operand x = a.forward_value(op.reads[0]);
    const Operand dw = a.target(1);
    RaggedSums sums{rows.groups};
    sums.groups.resize(static_cast<std::size_t>(dw.rows / a.dy().cols), 0);
    a.emit("dw_" + op.name, operators::grouped_weight_grad, {a.dy(), x}, {dw}, sums);
  }
  if (a.wants(0)) {
    const Operand w = a.forward_value(op.reads[1]);
    const RaggedRows exchanged{.groups = rows.groups, .assumed = rows.assumed, .b_is_kn = true};
    a.emit("d_" + op.name, operators::grouped_gemm, {a.dy(), w}, {a.target(0)}, exchanged);
  }
}

}  // namespace
}  // namespace in_grouped_gemm

constinit const Operator operators::grouped_gemm{
    .name = "grouped_gemm",
    .op_class = OpClass::gemm,
    .locality = Locality::contraction,
    .formula = "y = x w_g^T for the rows of each group g",
    .reads = {{"x", "M", "K"},
              {"w", "GN", "K"},
              {"scale", "SN", "SK", true},
              {"zero_or_tensor_scale", "ZN", "ZK", true}},
    .write = kY,
    .flops = product_flops,
    .sum_length = product_length,
    .reference = in_grouped_gemm::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = in_grouped_gemm::gradient,
    .framework = never_alone,
    .all_rows_gradient = 1,
    .mainloop = product_mainloop,
    .columns = ColumnOrder::weight_rows,
    .framework_launches = in_grouped_gemm::framework_launches};

}  // namespace fuseline
