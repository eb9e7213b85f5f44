// The order of a matrix' numbers: place p of the result says which of them, counted row by row,
// stands there when all are sorted. So the tokens of every expert come to lie behind each other.
#include <algorithm>
#include <numeric>
#include <vector>

#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> keys = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  std::vector<std::int64_t> order(static_cast<std::size_t>(keys.rows * keys.cols));
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int64_t i) { return keys(i / keys.cols, i % keys.cols); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
  for (std::int64_t p = 0; p < y.rows; ++p)
    y(p, 0) = static_cast<double>(order[static_cast<std::size_t>(p)]);
}

void lower(Emitter& e, const Op& op) {
  const Value order = e.fresh("order");
  e.emit(SortPlaces{order, op.reads[0]});
  e.produce(op.writes[0], order, true);
}

Attributes called(OperatorCall& c) {
  c.result(c.read(0).rows * c.read(0).cols, 1);
  c.result_in(Dtype::fp32);
  return {};
}

// What PyTorch launches to sort the experts' numbers and to find where each expert's rows begin:
// for up to 4,096 numbers copies into which one thread block sorts, for more a radix sort of eight
// passes; one_hot, sum, cumsum and a cast. A compiler fuses what is no library call.
std::vector<std::string> framework_launches(const Graph&, const Op& op, bool generated) {
  constexpr std::int64_t kOneBlock = 4096;
  std::vector<std::string> launches{"indices"};
  if (op.writes[0].rows <= kOneBlock) {
    launches.insert(launches.end(), {"copy_keys", "copy_indices"});
  } else {
    launches.insert(launches.end(), {"histogram", "scan"});
    for (const char* pass : {"pass1", "pass2", "pass3", "pass4", "pass5", "pass6", "pass7"})
      launches.emplace_back(pass);
  }
  if (generated)
    launches.insert(launches.end(), {"count", "offsets"});
  else
    launches.insert(launches.end(), {"zeros", "one_hot", "count", "offsets", "cast", "rows"});
  return launches;
}

}  // namespace

constinit const Operator operators::sort_places{
    .name = "sort_places",
    .op_class = OpClass::reduction,
    .locality = Locality::tile_local,
    .formula = "x[y[p]] is at place p of the sorted numbers of x",
    .reads = {{"x", "M", "K"}},
    .write = OperandSpec{"y", "P", "1"},
    .flops = per_input<1>,
    .sum_length = one_term,
    .reference = compute,
    .lower = lower,
    .extent = of_result,
    .gradient = no_gradient("places have none"),
    .framework = always<Implementation::framework_reduce>,
    .alone = "sorts what all rows have",
    .framework_launches = framework_launches,
    .called = called};

}  // namespace fuseline
