#include "model/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "base/error.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

std::size_t value_index(TensorId id) { return static_cast<std::size_t>(id.index); }

std::size_t element_count(const Tensor& t) {
  return static_cast<std::size_t>(checked_product<Bytes>(t.rows, t.cols).value());
}

bool is_given(const Graph& graph, TensorId id) {
  const Role role = graph.tensor(id).role;
  if (role == Role::cache) return true;
  return graph.producers(id).empty() && !graph.consumers(id).empty();
}

std::string position(const Tensor& t, std::size_t element) {
  const std::size_t cols = static_cast<std::size_t>(t.cols);
  return "[" + std::to_string(element / cols) + ", " + std::to_string(element % cols) + "]";
}

void check_input(const Tensor& t, const std::vector<double>& values) {
  if (values.size() != element_count(t))
    throw InputError({.field = t.name,
                      .value = std::to_string(values.size()) + " elements",
                      .message = "the input tensor has the wrong size",
                      .allowed = std::to_string(t.rows) + " x " + std::to_string(t.cols)});
  const auto bad =
      std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  if (bad != values.end())
    throw InputError({.field = t.name + position(t, static_cast<std::size_t>(bad - values.begin())),
                      .value = std::to_string(*bad),
                      .message = "the input tensor holds a value that is not finite",
                      .allowed = "finite numbers"});
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

bool all_equal(const std::vector<double>& v) {
  return v.size() > 1 && std::all_of(v.begin(), v.end(), [&](double e) { return e == v[0]; });
}

}  // namespace

TensorValues::TensorValues(const Graph& graph) : graph_(&graph), values_(graph.tensors().size()) {}

bool TensorValues::has(TensorId id) const { return !values_.at(value_index(id)).empty(); }

const std::vector<double>& TensorValues::at(TensorId id) const {
  FUSELINE_ASSERT(has(id), graph_->tensor(id).name + " has no values");
  return values_[value_index(id)];
}

const std::vector<double>& TensorValues::at(const std::string& name) const {
  const std::optional<TensorId> id = graph_->find_tensor(name);
  FUSELINE_ASSERT(id.has_value(), "no tensor " + name);
  return at(*id);
}

std::vector<double>& TensorValues::writable(TensorId id) {
  std::vector<double>& values = values_.at(value_index(id));
  if (values.empty()) values.resize(element_count(graph_->tensor(id)));
  return values;
}

TensorValues run_reference(const Graph& graph, const NamedTensors& inputs) {
  TensorValues values(graph);
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    if (!is_given(graph, id)) continue;
    const Tensor& t = graph.tensor(id);
    const auto given = inputs.find(t.name);
    if (given == inputs.end())
      throw InputError({.field = t.name, .message = "the input tensor is missing"});
    check_input(t, given->second);
    values.writable(id) = given->second;
  }
  for (const OpId id : topological_order(graph)) {
    const Op& op = graph.op(id);
    const std::vector<std::string> problems = check_operands(graph, op);
    FUSELINE_ASSERT(problems.empty(), problems[0]);
    op.kind->reference(graph, op, values, values);
  }
  return values;
}

double relative_l2(const std::vector<double>& got, const std::vector<double>& want) {
  FUSELINE_ASSERT(got.size() == want.size(), "tensors of different sizes");
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference) / std::sqrt(norm);
}

std::string disagreement(const std::vector<double>& got, const std::vector<double>& want,
                         double tolerance) {
  if (got.size() != want.size())
    return std::to_string(got.size()) + " elements, not " + std::to_string(want.size());
  for (const auto* values : {&got, &want}) {
    const std::string side = values == &got ? "result" : "reference";
    const auto bad =
        std::find_if(values->begin(), values->end(), [](double v) { return !std::isfinite(v); });
    if (bad != values->end())
      return "the " + side + "'s element " + std::to_string(bad - values->begin()) +
             " is not finite";
    if (all_equal(*values)) return "all elements of the " + side + " are equal";
  }
  const double error = relative_l2(got, want);
  if (error <= tolerance) return "";
  return "relative L2 error " + number(error) + " exceeds " + number(tolerance);
}

}  // namespace fuseline
