#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "sim/executor/inputs.h"
#include "sim/executor/reference_fast.h"

namespace fuseline::executor {

namespace {

// Where element j of a group goes: the first half to even places, the second to odd ones.
std::int64_t place(std::int64_t j, std::int64_t group) {
  return j < group / 2 ? 2 * j : 2 * (j - group / 2) + 1;
}

// Where all rows, or columns, of a tensor go: one after the other, as the plan says.
std::vector<std::int64_t> targets(const std::vector<const Interleaving*>& steps, bool columns,
                                  std::int64_t length) {
  std::vector<std::int64_t> to(static_cast<std::size_t>(length));
  std::iota(to.begin(), to.end(), 0);
  for (const Interleaving* how : steps) {
    if (how->columns != columns) continue;
    FUSELINE_ASSERT(how->begin + how->count <= length && how->count % how->group == 0, how->tensor);
    for (std::int64_t& i : to) {
      const std::int64_t j = i - how->begin;
      if (j < 0 || j >= how->count) continue;
      i = how->begin + j / how->group * how->group + place(j % how->group, how->group);
    }
  }
  return to;
}

// All steps at once: the matrices of many experts are one tensor, with a step for each.
std::shared_ptr<const Storage> reordered(const Storage& from,
                                         const std::vector<const Interleaving*>& steps,
                                         const Workers& workers) {
  auto to = std::make_shared<Storage>(from.type(), from.rows(), from.cols());
  const ElementSize element = size_of(from.type());
  const std::vector<std::int64_t> rows = targets(steps, false, from.rows());
  const std::vector<std::int64_t> cols = targets(steps, true, from.cols());
  const bool whole_rows = std::ranges::is_sorted(cols);
  FUSELINE_ASSERT(whole_rows || element.bits() >= 8,
                  steps.front()->tensor + " has no columns of whole bytes");
  const std::int64_t row_bytes = from.cols() * element;
  parallel_for(workers, Loop{from.rows(), static_cast<double>(from.rows() * from.cols())},
               [&](std::int64_t r, int) {
                 const std::int64_t row = rows[static_cast<std::size_t>(r)];
                 if (whole_rows) {
                   std::copy_n(from.at(r, 0), row_bytes, to->at(row, 0));
                   return;
                 }
                 for (std::int64_t c = 0; c < from.cols(); ++c)
                   std::copy_n(from.at(r, c), 1 * element,
                               to->at(row, cols[static_cast<std::size_t>(c)]));
               });
  return to;
}

std::shared_ptr<const Storage> rounded(const std::vector<double>& values, const Tensor& t) {
  auto to = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
  for (std::int64_t r = 0; r < t.rows; ++r) to->write(r, 0, t.cols, values.data() + r * t.cols);
  return to;
}

// W diag(γ), row by row: a block's largest weights never are in memory as fp64.
std::shared_ptr<const Storage> folded(const Storage& weight, const Storage& gamma, const Tensor& t,
                                      const Workers& workers) {
  auto to = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
  const std::vector<double> scale = to_doubles(gamma);
  parallel_for(workers, Loop{t.rows, static_cast<double>(t.rows * t.cols)},
               [&](std::int64_t row, int) {
                 std::vector<float> values(static_cast<std::size_t>(t.cols));
                 std::vector<double> products(values.size());
                 weight.read(row, 0, t.cols, values.data());
                 for (std::size_t c = 0; c < values.size(); ++c)
                   products[c] = static_cast<double>(values[c]) * scale[c];
                 to->write(row, 0, t.cols, products.data());
               });
  return to;
}

// The operators that make `op`'s operands, and op itself, as a graph of their own would run them:
// everything but folded weights, which are rounded one by one.
void run_small_operators(const Graph& preparation, const Graph& plan_graph, const Inputs& original,
                         const Workers& workers, Inputs& made) {
  Graph small;
  std::vector<TensorId> ids;
  for (const Tensor& t : preparation.tensors()) ids.push_back(small.add_tensor(t));
  for (const Op& op : preparation.ops()) {
    const Tensor& result = preparation.tensor(op.writes[0].tensor);
    if (op.kind == operators::mul_cols) {
      made[result.name] = folded(*original.at(preparation.tensor(op.reads[0].tensor).name),
                                 *original.at(preparation.tensor(op.reads[1].tensor).name),
                                 plan_graph.tensor(*plan_graph.find_tensor(result.name)), workers);
    } else {
      small.add_op(op);
    }
  }
  if (small.ops().empty()) return;
  const TensorValues values = fast_reference(small, original, workers);
  for (const Op& op : small.ops()) {
    const std::string& name = small.tensor(op.writes[0].tensor).name;
    const auto id = plan_graph.find_tensor(name);
    if (id) made[name] = rounded(values.at(op.writes[0].tensor), plan_graph.tensor(*id));
  }
}

}  // namespace

Inputs round_inputs(const Graph& graph, const NamedTensors& values) {
  Inputs inputs;
  for (const auto& [name, given] : values) {
    const auto id = graph.find_tensor(name);
    if (!id) continue;
    const Tensor& t = graph.tensor(*id);
    if (static_cast<std::int64_t>(given.size()) != t.rows * t.cols)
      throw InputError({.field = name,
                        .value = std::to_string(given.size()) + " elements",
                        .message = "the input tensor has the wrong size",
                        .allowed = std::to_string(t.rows) + " x " + std::to_string(t.cols)});
    inputs[name] = rounded(given, t);
  }
  return inputs;
}

Inputs prepare_inputs(const Plan& plan, const Inputs& original, std::uint64_t seed,
                      const Workers& workers) {
  Inputs all = original;
  run_small_operators(plan.preparation.graph, plan.graph, original, workers, all);
  Inputs result;
  Graph unknown;
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
    const Tensor& t = plan.graph.tensors()[i];
    if (t.role == Role::activation || t.role == Role::output) continue;
    const auto found = all.find(t.name);
    if (found != all.end()) {
      result.insert(*found);
    } else {
      unknown.add_tensor(t);
    }
  }
  result.merge(random_storage(unknown, seed, workers));
  std::map<std::string, std::vector<const Interleaving*>> steps;  // by tensor
  for (const Interleaving& how : plan.preparation.interleavings) steps[how.tensor].push_back(&how);
  for (const auto& [tensor, of_tensor] : steps) {
    const auto found = result.find(tensor);
    FUSELINE_ASSERT(found != result.end(), tensor);
    found->second = reordered(*found->second, of_tensor, workers);
  }
  return result;
}

}  // namespace fuseline::executor
