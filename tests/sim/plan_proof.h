// A plan is proved: its programs are legal, it is predicted, and computed with the bytes that are
// predicted and the results of the fp64 reference.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "model/prepare.h"
#include "model/reference.h"
#include "sim/block/estimate.h"
#include "sim/block/limits.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::test {

// A graph by hand: tensors of bf16.
class GraphByHand {
 public:
  Operand tensor(const std::string& name, Role role, std::int64_t rows, std::int64_t cols,
                 std::vector<std::int64_t> outer = {}) {
    return graph.whole(graph.add_tensor(
        {.name = name, .role = role, .rows = rows, .cols = cols, .outer = std::move(outer)}));
  }
  void op(const std::string& name, OpKind kind, std::vector<Operand> reads,
          std::vector<Operand> writes, const Attributes& attributes = {}) {
    graph.add_op({.name = name,
                  .kind = kind,
                  .reads = std::move(reads),
                  .writes = std::move(writes),
                  .attributes = attributes,
                  .site = name});
  }
  Graph graph;
};

// Returns the prediction, for what else a test asks of it.
inline PlanEstimate expect_proved(const Plan& plan, const std::string& what) {
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << what;
  const Gpu& gpu = executor::executor_gpu();
  const Graph& block = plan.block;
  const PlanEstimate predicted = simulate(plan, gpu, Fidelity::hierarchy);
  EXPECT_GE(predicted.time.value(), limits_of(block, gpu).time.value()) << what;

  const executor::Inputs given = executor::random_storage(block, 5, {}, {.outliers = 3});
  NamedTensors values;
  for (const auto& [name, storage] : given) values[name] = executor::to_doubles(*storage);
  const TensorValues want = run_reference(block, values);
  const executor::Execution run =
      executor::execute(plan, executor::prepare_inputs(plan, given, 5, {}), gpu, {});
  executor::expect_predicted_bytes(plan, run, what);
  double allowed = 0;
  for (const Op& op : block.ops()) allowed += tolerance(block, op);
  NamedTensors got;
  for (const Tensor& t : block.tensors())
    if (t.role == Role::output)
      got[t.name] = executor::to_doubles(run.memory->at(*plan.graph.find_tensor(t.name)));
  // Gradients of reordered weights come out reordered.
  for (const auto& [name, result] : restore(plan.preparation, plan.graph, got))
    EXPECT_EQ(disagreement(result, want.at(name), allowed), "") << name << ' ' << what;
  return predicted;
}

}  // namespace fuseline::test
