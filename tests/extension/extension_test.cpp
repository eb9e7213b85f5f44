// What was added from outside, each thing in one file, is planned, predicted, executed and compiled
// like what was there before: a small MLP with an operator of its own under a policy of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/emit/plan_source.h"
#include "model/backward.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "model/reference.h"
#include "sim/block/estimate.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "tests/extension/quick_gelu.h"

namespace fuseline::extension {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

// y = quick_gelu(x w1^T) w2^T, odd sizes.
Graph mlp(std::int64_t M, std::int64_t D, std::int64_t F) {
  Graph g;
  const auto add = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return g.whole(g.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
  };
  const Operand x = add("x", Role::input, M, D);
  const Operand w1 = add("w_1", Role::weight, F, D);
  const Operand up = add("up", Role::activation, M, F);
  const Operand act = add("act", Role::activation, M, F);
  const Operand w2 = add("w_2", Role::weight, D, F);
  const Operand y = add("y", Role::output, M, D);
  g.add_op({.name = "up", .kind = operators::gemm, .reads = {x, w1}, .writes = {up}});
  g.add_op({.name = "act", .kind = quick_gelu, .reads = {up}, .writes = {act}});
  g.add_op({.name = "down", .kind = operators::gemm, .reads = {act, w2}, .writes = {y}});
  return g;
}

using Bytewise = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

Bytewise by_name(const Graph& graph, const std::vector<RequestedBytes>& moved) {
  Bytewise bytes;
  for (const RequestedBytes& r : moved) {
    auto& entry = bytes[graph.tensor(r.tensor).name];
    entry.first += r.loaded.value();
    entry.second += r.stored.value();
  }
  return bytes;
}

// Bytes counted while the plan computes are those predicted, tensor by tensor; every output agrees
// with fp64.
void expect_executed_as_predicted(const Plan& plan, const Graph& graph) {
  const Gpu gpu = load_gpu("h200");
  const executor::Inputs inputs = executor::random_storage(graph, 5, {}, {.outliers = 3});
  NamedTensors values;
  for (const auto& [name, storage] : inputs) values[name] = executor::to_doubles(*storage);
  const TensorValues want = run_reference(graph, values);
  const executor::Execution run = executor::execute(plan, inputs, gpu, {});
  const PlanEstimate predicted = simulate(plan, gpu, Fidelity::hierarchy);
  EXPECT_GT(predicted.time.value(), 0);
  Bytewise counted, asked;
  for (const executor::ExecutedKernel& k : run.kernels)
    for (const auto& [name, b] : by_name(plan.graph, k.moved)) {
      counted[name].first += b.first;
      counted[name].second += b.second;
    }
  for (const KernelEstimate& k : predicted.kernels)
    for (const auto& [name, b] : by_name(plan.graph, k.requested)) {
      asked[name].first += b.first;
      asked[name].second += b.second;
    }
  EXPECT_EQ(counted, asked);
  double allowed = 0;
  for (const Op& op : graph.ops()) allowed += tolerance(graph, op);
  for (const Tensor& t : graph.tensors()) {
    if (t.role != Role::output) continue;
    const auto got = executor::to_doubles(run.memory->at(*plan.graph.find_tensor(t.name)));
    EXPECT_EQ(disagreement(got, want.at(t.name), allowed), "") << t.name;
  }
}

TEST(ExtensionOperator, IsListedWithTheOthers) {
  EXPECT_EQ(find_operator("quick_gelu"), &quick_gelu);
  EXPECT_THAT(all_operators(), Contains(&quick_gelu_backward));
}

TEST(ExtensionPolicy, IsListedAndSaysWhatItFuses) {
  EXPECT_THAT(policies(), Contains(Field(&PolicyInfo::name, "gemm-and-loops")));
  const Plan plan = make_plan("gemm-and-loops", mlp(70, 48, 136));
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_EQ(plan.kernels[0].ops.size(), 2U);  // the operator is behind its GEMM
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
}

TEST(ExtensionPlan, IsExecutedAsItIsPredicted) {
  const Graph graph = mlp(70, 48, 136);
  expect_executed_as_predicted(make_plan("gemm-and-loops", graph), graph);
  expect_executed_as_predicted(make_plan("coda", graph), graph);
  expect_executed_as_predicted(make_plan("torch-compile", graph), graph);
}

TEST(ExtensionPlan, TrainsWithTheOperatorsOwnGradient) {
  const Graph joint = differentiate(mlp(40, 24, 56));
  EXPECT_TRUE(joint.find_op("d_act").has_value());
  const Plan plan = make_plan("gemm-and-loops", joint);
  expect_executed_as_predicted(plan, plan.block);
}

TEST(ExtensionPlan, CompilesForHopper) {
  const Plan plan = make_plan("gemm-and-loops", mlp(256, 512, 1024));
  const std::vector<cuda::Source> sources =
      cuda::kernel_sources(plan, plan.kernels[0], load_gpu("h200"), cuda::SmTarget::sm_90a);
  ASSERT_FALSE(sources.empty());
  EXPECT_THAT(sources[0].text, HasSubstr("1.702"));
  try {
    const cuda::Compiler compiler;
    if (!compiler.makes(cuda::SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit has no sm_90a";
    for (const cuda::Source& source : sources) {
      const cuda::Compiled compiled = compiler.compile(source, cuda::SmTarget::sm_90a);
      EXPECT_FALSE(compiled.cubin.empty());
      EXPECT_EQ(compiled.use.spill_bytes, 0);
    }
  } catch (const MissingError& error) {
    GTEST_SKIP() << error.what();
  }
}

}  // namespace
}  // namespace fuseline::extension
