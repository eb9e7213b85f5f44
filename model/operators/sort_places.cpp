// The order of a matrix' numbers: place p of the result says which of them, counted row by row,
// stands there when all are sorted. So the tokens of every expert come to lie behind each other.
// The second result is the inverse, at which place each number is.
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_sort_places {
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
  if (op.writes.size() == 1) return;
  const View<double> places = write(g, out, op.writes[1]);
  for (std::int64_t p = 0; p < y.rows; ++p)
    places(order[static_cast<std::size_t>(p)], 0) = static_cast<double>(p);
}

// The experts that the numbers name, 0: it is not known what they are. In a part of a block another
// one may have chosen them.
std::int64_t experts_of(const Graph& graph, const Op& op) {
  for (const OpId id : graph.producers(op.reads[0].tensor)) {
    const Op& op_of_keys = graph.op(id);
    if (op_of_keys.kind == operators::choose_experts &&
        op_of_keys.writes[1].tensor == op.reads[0].tensor)
      return op_of_keys.reads[0].cols;
  }
  return 0;
}

void lower(Emitter& e, const Op& op) {
  const Value order = e.fresh("order");
  const bool both = op.writes.size() > 1;
  const Value places = both ? e.fresh("places") : -1;
  e.emit(SortPlaces{order, op.reads[0], experts_of(e.graph(), op), places});
  e.produce(op.writes[0], order, true);
  if (both) e.produce(op.writes[1], places, true);
}

Attributes called(OperatorCall& c) {
  const Operand& keys = c.read(0);
  if (keys.rows * keys.cols > SortPlaces::kMostKeys)
    c.refuse(fmt::format("has {} rows of {} numbers each to sort, and places are stored as fp32, "
                         "which has every whole number up to {}",
                         keys.rows, keys.cols, SortPlaces::kMostKeys),
             fmt::format("at most {} rows: fewer sequences (batch) or fewer tokens of each (seq)",
                         SortPlaces::kMostKeys / keys.cols));
  c.result(keys.rows * keys.cols, 1);
  c.result_in(Dtype::fp32);
  return {};
}

// PyTorch's sort: copies into which one thread block sorts up to 4,096 numbers, for more a radix
// sort of eight passes.
void add_sort(LaunchList& list, const Op& op) {
  constexpr std::int64_t kOneBlock = 4096;
  const Operand& keys = op.reads[0];
  const std::int64_t count = op.writes[0].rows;
  list.add_short({"indices"});
  if (count <= kOneBlock) {
    list.add_short({"copy_keys", "copy_indices"});
    list.add("sort", Implementation::framework_sort, {keys}, {op.writes[0]}).each = count;
    return;
  }
  list.add_short({"histogram", "scan"});
  for (const char* pass : {"pass1", "pass2", "pass3", "pass4", "pass5", "pass6", "pass7", "pass8"})
    list.add(pass, Implementation::framework_sort_pass, {keys}, {op.writes[0]});
}

// The sort of the experts' numbers, and where each expert's rows begin: one_hot, sum, cumsum and a
// cast. A compiler makes a loop of all but the sort, and of the sort too where a thread block of
// its own holds the numbers.
FrameworkLaunches framework_launches(const Graph& graph, const Op& op, bool generated) {
  constexpr std::int64_t kGenerated = 512;
  const std::int64_t count = op.writes[0].rows;
  LaunchList list;
  if (generated) {
    if (count <= kGenerated)
      list.add("sort", Implementation::generated_sort, {op.reads[0]}, {op.writes[0]}).each = count;
    else
      add_sort(list, op);
    list.add_short({"count", "offsets"});
    return std::move(list).instead();
  }
  add_sort(list, op);
  // Numbers of 8 bytes, as wide as two of fp32.
  const std::int64_t experts = std::max<std::int64_t>(1, experts_of(graph, op));  // one number each
  const Scratch one_hot{"one_hot", count, 2 * experts, Dtype::fp32};
  list.add("zeros", Implementation::vectorized, {}, {one_hot});
  list.add_short({"one_hot"});
  list.add("count", Implementation::framework_reduce, {one_hot},
           {Scratch{"counts", 1, 2 * experts, Dtype::fp32}});
  list.add_short({"offsets_start", "offsets", "cast", "rows"});
  return std::move(list).instead();
}

}  // namespace
}  // namespace in_sort_places

constinit const Operator operators::sort_places{
    .name = "sort_places",
    .op_class = OpClass::reduction,
    .locality = Locality::tile_local,
    .formula = "x[y[p]] is at place p of the sorted numbers of x",
    .reads = {{"x", "M", "K"}},
    .write = OperandSpec{"y", "P", "1"},
    .flops = per_input<1>,
    .sum_length = one_term,
    .reference = in_sort_places::compute,
    .lower = in_sort_places::lower,
    .extent = of_result,
    .gradient = no_gradient("places have none"),
    .framework = always<Implementation::framework_reduce>,
    .also_writes = {"places", "P", "1"},
    .alone = "sorts what all rows have",
    .framework_launches = in_sort_places::framework_launches,
    .called = in_sort_places::called};

}  // namespace fuseline
