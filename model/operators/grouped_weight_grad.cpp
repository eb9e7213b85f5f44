// The gradient of the matrices of a grouped product: for each group of rows, what its rows of dy
// and x make together. Groups without rows, the experts that nobody chose, have zeros.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_grouped_weight_grad {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> dw = write(g, out, op.writes[0]);
  std::int64_t first = 0;  // of the group's rows
  std::int64_t matrix = 0;
  for (const std::int64_t count : op.attributes.as<RaggedSums>().groups) {
    for (std::int64_t m = 0; m < dy.cols; ++m) {
      for (std::int64_t n = 0; n < x.cols; ++n) {
        double sum = 0;
        for (std::int64_t p = first; p < first + count; ++p) sum += dy(p, m) * x(p, n);
        dw(matrix + m, n) = sum;
      }
    }
    first += count;
    matrix += dy.cols;
  }
  FUSELINE_ASSERT(first == x.rows && matrix == dw.rows, op.name + ": its groups are not its rows");
}

// The longest group.
std::int64_t terms(const Graph&, const Op& op) {
  return std::max<std::int64_t>(1, std::ranges::max(op.attributes.as<RaggedSums>().groups));
}

// As for the product itself.
FrameworkLaunches framework_launches(const Graph&, const Op&, bool) {
  LaunchList list;
  list.add_short({"prepare"});
  return std::move(list).beside();
}

}  // namespace
}  // namespace in_grouped_weight_grad

constinit const Operator operators::grouped_weight_grad{
    .name = "grouped_weight_grad",
    .op_class = OpClass::gemm,
    .locality = Locality::contraction,
    .formula = "dw_g = dy_g^T x_g for the rows of each group g",
    .reads = {{"dy", "M", "N"}, {"x", "M", "K"}},
    .write = OperandSpec{"dw", "GN", "K"},
    .flops = product_flops,
    .sum_length = in_grouped_weight_grad::terms,
    .reference = in_grouped_weight_grad::compute,
    .lower = in_mainloop,
    .extent = of_result,
    .gradient = no_gradient(kOfAGradient),
    .framework = never_alone,
    .mainloop = product_mainloop,
    .columns = ColumnOrder::lost,
    .framework_launches = in_grouped_weight_grad::framework_launches};

}  // namespace fuseline
