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

// What plans of one block are proved against, made once for all of them: the same given tensors and
// the results of the fp64 reference.
class Proof {
 public:
  explicit Proof(const Graph& block)
      : block_(block),
        limits_(limits_of(block, executor::executor_gpu())),
        given_(executor::random_storage(block, kSeed, {}, {.outliers = 3})),
        want_(run_reference(block, in_fp64(given_))) {
    for (const Op& op : block.ops()) allowed_ += tolerance(block, op);
  }

  // Returns the prediction, for what else a test asks of it.
  PlanEstimate of(const Plan& plan, const std::string& what) const {
    EXPECT_EQ(names(plan.block), names(block_)) << what << ": a plan of another block";
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << what;
    const Gpu& gpu = executor::executor_gpu();
    const PlanEstimate predicted = simulate(plan, gpu, Fidelity::hierarchy);
    EXPECT_GE(predicted.time.value(), limits_.time.value()) << what;

    const executor::Execution run =
        executor::execute(plan, executor::prepare_inputs(plan, given_, kSeed, {}), gpu, {});
    executor::expect_bytes(predicted, plan, run, what);
    NamedTensors got;
    for (const Tensor& t : block_.tensors())
      if (t.role == Role::output)
        got[t.name] = executor::to_doubles(run.memory->at(*plan.graph.find_tensor(t.name)));
    // Gradients of reordered weights come out reordered.
    for (const auto& [name, result] : restore(plan.preparation, plan.graph, got))
      EXPECT_EQ(disagreement(result, want_.at(name), allowed_), "") << name << ' ' << what;
    return predicted;
  }

 private:
  static constexpr std::uint64_t kSeed = 5;

  static NamedTensors in_fp64(const executor::Inputs& given) {
    NamedTensors values;
    for (const auto& [name, storage] : given) values[name] = executor::to_doubles(*storage);
    return values;
  }

  static std::vector<std::string> names(const Graph& graph) {
    std::vector<std::string> all;
    for (const Tensor& t : graph.tensors())
      all.push_back(t.name + ' ' + std::to_string(t.rows) + ' ' + std::to_string(t.cols) + ' ' +
                    name_of(t.dtype));
    for (const Op& op : graph.ops()) all.push_back(op.name);
    return all;
  }

  Graph block_;
  Limits limits_;
  executor::Inputs given_;
  TensorValues want_;
  double allowed_ = 0;
};

// Of one plan alone.
inline PlanEstimate expect_proved(const Plan& plan, const std::string& what) {
  return Proof(plan.block).of(plan, what);
}

}  // namespace fuseline::test
