// What was added from outside, each thing in one file, is planned, predicted, executed and compiled
// like what was there before: a small MLP with the operator of clipped_gelu.cpp, lowered to the
// primitive of clip.h and the map of quick_gelu.h, under the policy of gemm_and_loops.cpp, for the
// GPU of loom.toml, whose architecture is that of weave.toml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
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
#include "sim/gpu/plan_target.h"
#include "sim/gpu/standing.h"
#include "tests/cli/cli_run.h"
#include "tests/cuda/compile/no_compiler.h"
#include "tests/cuda/emit/passed_kernels.h"
#include "tests/extension/clip.h"
#include "tests/extension/quick_gelu.h"
#include "tests/model/gradient_check.h"

namespace fuseline::extension {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kLoom = std::string(FUSELINE_SOURCE_DIR) + "/tests/extension/loom.toml";
constexpr const char* kPolicy = "gemm-and-loops";

Gpu loom() { return load_gpu(kLoom); }
const Operator* clipped_gelu() { return find_operator("clipped_gelu"); }

// y = clipped_gelu(x w1^T) w2^T, odd sizes.
Graph mlp(std::int64_t M, std::int64_t D, std::int64_t F) {
  Graph g;
  const auto add = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return g.whole(g.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
  };
  const Operand x = add("x", Role::input, M, D);
  const Operand w1 = add("w_1", Role::weight, F, D);
  const Operand limits = add("limits", Role::table, M, 1);
  const Operand up = add("up", Role::activation, M, F);
  const Operand act = add("act", Role::activation, M, F);
  const Operand w2 = add("w_2", Role::weight, D, F);
  const Operand y = add("y", Role::output, M, D);
  g.add_op({.name = "up", .kind = operators::gemm, .reads = {x, w1}, .writes = {up}});
  g.add_op({.name = "act", .kind = *clipped_gelu(), .reads = {up, limits}, .writes = {act}});
  g.add_op({.name = "down", .kind = operators::gemm, .reads = {act, w2}, .writes = {y}});
  return g;
}

NamedTensors doubles(const executor::Inputs& inputs) {
  NamedTensors values;
  for (const auto& [name, storage] : inputs) values[name] = executor::to_doubles(*storage);
  return values;
}

// Some values of each row are beyond its limit and some are not, and none is near it: there the
// gradient jumps, so that rounding could move a value to the other side.
std::vector<double> limits_between(const std::vector<double>& up, std::size_t rows) {
  std::vector<double> limits;
  const std::size_t cols = up.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<double> sizes;
    for (std::size_t c = 0; c < cols; ++c) sizes.push_back(std::abs(up[r * cols + c]));
    std::ranges::sort(sizes);
    std::size_t widest = cols / 2;
    for (std::size_t i = cols / 2; i + 2 < cols; ++i)
      if (sizes[i + 1] - sizes[i] > sizes[widest + 1] - sizes[widest]) widest = i;
    limits.push_back((sizes[widest] + sizes[widest + 1]) / 2);
  }
  return limits;
}

executor::Inputs inputs_of(const Graph& graph) {
  executor::Inputs inputs = executor::random_storage(graph, 5, {}, {.outliers = 3});
  const Tensor& limits = graph.tensor(*graph.find_tensor("limits"));
  const TensorValues values = run_reference(graph, doubles(inputs));
  const auto rows = static_cast<std::size_t>(limits.rows);
  inputs["limits"] =
      executor::round_inputs(graph, {{"limits", limits_between(values.at("up"), rows)}})["limits"];
  return inputs;
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
void expect_executed_as_predicted(const Plan& plan, const Graph& graph, const Gpu& gpu) {
  const executor::Inputs inputs = inputs_of(graph);
  const TensorValues want = run_reference(graph, doubles(inputs));
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
  EXPECT_GE(counted.at("limits").first, graph.tensor(*graph.find_tensor("limits")).bytes().value())
      << "the primitive's own loads are counted";
  double allowed = 0;
  for (const Op& op : graph.ops()) allowed += tolerance(graph, op);
  for (const Tensor& t : graph.tensors()) {
    if (t.role != Role::output) continue;
    const auto got = executor::to_doubles(run.memory->at(*plan.graph.find_tensor(t.name)));
    EXPECT_EQ(disagreement(got, want.at(t.name), allowed), "") << t.name;
  }
}

template <class Looked>
bool has(const Kernel& kernel, Looked looked) {
  return std::ranges::any_of(kernel.phases, [&](const Program& program) {
    return std::ranges::any_of(program.body, looked);
  });
}
bool has_clip(const Kernel& kernel) {
  return has(kernel, [](const Primitive& p) { return p.is<Clip>(); });
}
bool has_quick_gelu(const Kernel& kernel) {
  return has(kernel, [](const Primitive& p) {
    const auto* map = p.as<Map>();
    return map != nullptr && map->fn == quick_gelu;
  });
}

// Every kernel of the plan becomes machine code for the GPU, and none spills registers.
void expect_compiled(const Plan& plan, const Gpu& gpu) {
  ASSERT_EQ(cuda::target_of(gpu), cuda::SmTarget::sm_90a);
  const cuda::Compiler compiler;
  if (!compiler.makes(cuda::SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit has no sm_90a";
  for (const Kernel& kernel : plan.kernels) {
    for (const cuda::Source& source :
         cuda::kernel_sources(plan, kernel, gpu, cuda::SmTarget::sm_90a)) {
      if (has_clip(kernel)) {
        EXPECT_THAT(source.text, AllOf(HasSubstr("Tile clip("), HasSubstr("= clip(p.")));
      }
      if (has_quick_gelu(kernel)) {
        EXPECT_THAT(source.text, AllOf(HasSubstr("A quick_gelu("), HasSubstr("= quick_gelu(q")));
      }
      const test::Passed passed(compiler, cuda::SmTarget::sm_90a, source, "a cubin, no spills");
      if (passed.known()) continue;
      const cuda::Compiled compiled = compiler.compile(source, cuda::SmTarget::sm_90a);
      EXPECT_FALSE(compiled.cubin.empty()) << source.name;
      EXPECT_EQ(compiled.use.spill_bytes, 0) << source.name;
      if (!compiled.cubin.empty() && compiled.use.spill_bytes == 0) passed.remember();
    }
  }
}

TEST(ExtensionOperator, IsListedWithTheOthers) {
  ASSERT_NE(clipped_gelu(), nullptr);
  EXPECT_THAT(all_operators(), Contains(find_operator("clipped_gelu_backward")));
}

TEST(ExtensionPolicy, IsListedAndSaysWhatItFuses) {
  EXPECT_THAT(policies(), Contains(Field(&PolicyInfo::name, kPolicy)));
  const Plan plan = make_plan(kPolicy, mlp(70, 48, 136));
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_EQ(plan.kernels[0].ops.size(), 2U);  // the operator is behind its GEMM
  EXPECT_THAT(check_plan(plan), IsEmpty());
}

TEST(ExtensionPrimitive, IsInTheProgramsOfTheOperator) {
  const Plan plan = make_plan(kPolicy, mlp(70, 48, 136));
  EXPECT_TRUE(has_clip(plan.kernels[0]));
  EXPECT_FALSE(has_clip(plan.kernels[1]));
  EXPECT_THAT(print_program(plan.graph, plan.kernels[0].phases[0]), HasSubstr("q = clip(y)"));
}

TEST(ExtensionMap, IsInTheProgramsOfTheOperator) {
  const Plan plan = make_plan(kPolicy, mlp(70, 48, 136));
  EXPECT_TRUE(has_quick_gelu(plan.kernels[0]));
  EXPECT_FALSE(has_quick_gelu(plan.kernels[1]));
  EXPECT_THAT(print_program(plan.graph, plan.kernels[0].phases[0]), HasSubstr("o = quick_gelu(q)"));
}

TEST(ExtensionArchitecture, IsUnlikeTheOneThatItInheritsFrom) {
  const Gpu gpu = loom(), h200 = load_gpu("h200");
  const Architecture &weave = *gpu.architecture, &hopper = *h200.architecture;
  EXPECT_EQ(weave.name, "weave");
  EXPECT_EQ(weave.inherits, "hopper");
  EXPECT_TRUE(hopper.features.contains(Feature::clusters));
  EXPECT_FALSE(weave.features.contains(Feature::clusters));
  EXPECT_NE(weave.tiles.own, hopper.tiles.own);
  // Its file says of every number whether somebody measured it; nobody did.
  for (const auto& [name, origin] : weave.origins)
    EXPECT_EQ(origin.number.status, origin.file == "weave" ? "assumed" : "inherited") << name;
}

TEST(ExtensionGpu, IsReadFromItsFileAndUncalibrated) {
  const Gpu gpu = loom();
  EXPECT_EQ(gpu.name, "loom");
  EXPECT_EQ(standing_of(gpu), Standing::uncalibrated);
  EXPECT_THAT(gpu.more_memory, Contains(Field(&GpuMemory::name, "die scratch")));
  EXPECT_THAT(gpu.sources.at("sm_count"), HasSubstr("assumed"));
}

TEST(ExtensionGpu, TheProgramPredictsForItAndSaysThatNobodyMeasuredIt) {
  const CliRun run = cli({"predict", "--model", "tinyllama", "--gpu", kLoom, "--policy", "coda"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("Loom 64 GB (imagined): 96 SMs"), HasSubstr("UNCALIBRATED")));
}

// The one plan that has all six of them.
TEST(ExtensionPlan, OfAllSixIsPredictedForItsGpu) {
  const Gpu gpu = loom();
  const Plan plan = make_plan(kPolicy, mlp(2048, 1024, 4096), plan_target(gpu));
  EXPECT_TRUE(has_clip(plan.kernels[0]));
  const PlanEstimate here = simulate(plan, gpu, Fidelity::hierarchy);
  const PlanEstimate there = simulate(plan, load_gpu("h200"), Fidelity::hierarchy);
  EXPECT_GT(here.time, there.time) << "a slower GPU";
  EXPECT_GE(here.time, here.limits.time);
  for (const KernelEstimate& k : here.kernels)
    EXPECT_THAT(gpu.architecture->tiles.own, Contains(AllOf(Field(&GemmTile::m, k.tile.at(0)),
                                                            Field(&GemmTile::n, k.tile.at(1)))));
}

TEST(ExtensionPlan, OfAllSixIsExecutedAsItIsPredicted) {
  const Graph graph = mlp(70, 48, 136);
  const Gpu gpu = loom();
  for (const char* policy : {kPolicy, "coda", "torch-compile"}) {
    SCOPED_TRACE(policy);
    expect_executed_as_predicted(make_plan(policy, graph, plan_target(gpu)), graph, gpu);
  }
}

TEST(ExtensionPlan, OfAllSixTrainsWithTheOperatorsOwnGradient) {
  const Graph joint = differentiate(mlp(40, 24, 56));
  EXPECT_TRUE(joint.find_op("d_act").has_value());
  const Gpu gpu = loom();
  const Plan plan = make_plan(kPolicy, joint, plan_target(gpu));
  expect_executed_as_predicted(plan, plan.block, gpu);
}

TEST(ExtensionOperator, ItsGradientIsThatOfItsReference) {
  const Graph forward = mlp(5, 4, 12);
  const Graph joint = differentiate(forward);
  const NamedTensors inputs = doubles(inputs_of(joint));
  const TensorValues values = run_reference(joint, inputs);
  std::mt19937 random(7);
  for (const char* name : {"x", "w_1", "w_2"})
    EXPECT_EQ(
        test::wrong_gradient(forward, inputs, name, values.at(std::string("d") + name), random),
        "");
}

TEST(ExtensionPlan, OfAllSixCompilesForHopper) {
  const Gpu gpu = loom();
  const Graph joint = differentiate(mlp(256, 512, 1024));
  try {
    // Behind a GEMM, in a kernel of its own, and both in the gradient.
    expect_compiled(make_plan(kPolicy, mlp(256, 512, 1024), plan_target(gpu)), gpu);
    expect_compiled(make_plan("per-operator", mlp(256, 512, 1024), plan_target(gpu)), gpu);
    expect_compiled(make_plan(kPolicy, joint, plan_target(gpu)), gpu);
  } catch (const MissingError& error) {
    cuda::end_without_compiler(error);
  }
}

}  // namespace
}  // namespace fuseline::extension
