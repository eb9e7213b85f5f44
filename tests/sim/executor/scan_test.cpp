// Scans and convolutions along rows execute as they are predicted, and agree with fp64: alone in
// random odd shapes, and in a mixer block under every policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/operators/operator_table.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "tests/model/scan_support.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::executor {
namespace {

using test::ScanCase;

std::vector<double> result_of(const Plan& plan, const Execution& run, const std::string& name) {
  return to_doubles(run.memory->at(plan.graph.find_tensor(name).value()));
}

// Rounded as the plan stores them; what the reference is given too.
NamedTensors rounded(const Inputs& inputs) {
  NamedTensors values;
  for (const auto& [name, storage] : inputs) values[name] = to_doubles(*storage);
  return values;
}

ExecuteOptions threads(int count) {
  ExecuteOptions options;
  options.workers.threads = count;
  options.workers.short_loops_too = true;
  return options;
}

// One operator: bits do not depend on threads, bytes are those predicted, results agree with fp64
// within the operator's tolerance, and zeros do not.
void check_operator(const Graph& graph, std::mt19937& random, const std::string& what) {
  const Plan plan = make_plan("per-operator", graph);
  ASSERT_EQ(plan.kernels.size(), 1U);
  const Inputs inputs = round_inputs(graph, test::scan_inputs(graph, random));
  const TensorValues want = run_reference(graph, rounded(inputs));
  const Execution run = execute(plan, inputs, executor_gpu(), threads(1));
  expect_same_bits(plan, run, execute(plan, inputs, executor_gpu(), threads(3)), what);
  expect_predicted_bytes(plan, run, what);
  const double allowed = tolerance(graph, graph.ops()[0]);
  for (const Operand& o : graph.ops()[0].writes) {
    const std::string& name = graph.tensor(o.tensor).name;
    const std::vector<double>& reference = want.at(name);
    if (reference.size() < 2) continue;  // one number has no direction
    EXPECT_EQ(disagreement(result_of(plan, run, name), reference, allowed), "")
        << name << ' ' << what;
    EXPECT_NE(disagreement(std::vector<double>(reference.size()), reference, allowed), "");
  }
}

TEST(ExecuteScan, RandomShapesAgreeWithTheReferenceInPredictedBytes) {
  std::mt19937 random(31);
  for (int round = 0; round < 120; ++round) {
    const ScanCase c = test::random_scan(random);
    check_operator(test::scan_graph(c), random, test::describe(c));
  }
}

// By steps and rates, with and without a state that is overwritten in place.
TEST(ExecuteScan, StepsAndRatesAgreeWithTheReferenceInPredictedBytes) {
  std::mt19937 random(39);
  for (int round = 0; round < 120; ++round) {
    const ScanCase c = test::random_scan(random);
    const bool of_columns = round % 2 == 0;
    check_operator(test::selective_graph(c, of_columns), random,
                   test::describe(c) + (of_columns ? " rates of columns" : ""));
  }
}

TEST(ExecuteScan, ShapesOfARealMixerAgreeWithTheReference) {
  std::mt19937 random(32);
  const ScanCase c{.shape = {6, 1, 64, 128, 2, 300, 64},
                   .state = true,
                   .state_after = true,
                   .dtype = Dtype::bf16};
  check_operator(test::scan_graph(c), random, test::describe(c));
}

// k and q once for each head of their group, all else once.
TEST(ExecuteScan, BytesAreThoseOfThreadBlocksThatWalkOneHeadEach) {
  const ScanCase c{
      .shape = {6, 2, 5, 7, 3, 11, 4}, .state = true, .state_after = true, .dtype = Dtype::bf16};
  const Graph graph = test::scan_graph(c);
  const Plan plan = make_plan("per-operator", graph);
  const ByteCounts bytes = byte_counts(graph, requested_bytes(graph, plan.kernels[0]));
  const std::int64_t rows = 3 * 11;
  const ByteCounts want{{"x", {rows * 30 * 2, 0}},      {"log_decay", {rows * 6 * 4, 0}},
                        {"k", {rows * 14 * 2 * 3, 0}},  {"q", {rows * 14 * 2 * 3, 0}},
                        {"state", {3 * 30 * 7 * 4, 0}}, {"state_after", {0, 3 * 30 * 7 * 4}},
                        {"y", {0, rows * 30 * 2}}};
  EXPECT_EQ(bytes, want);
}

// A decode of T tokens, one at a time with the state through memory, gives what chunks give.
TEST(ExecuteScan, StepsThroughMemoryEqualChunks) {
  std::mt19937 random(33);
  for (int round = 0; round < 12; ++round) {
    ScanCase whole = test::random_scan(random);
    whole.shape.batch = 1;
    whole.shape.tokens = test::pick(random, 2, 40);
    whole.shape.chunk = test::pick(random, 2, 16);
    whole.dtype = Dtype::fp32;
    whole.state = whole.state_after = true;
    const Graph graph = test::scan_graph(whole);
    const Inputs inputs = round_inputs(graph, test::scan_inputs(graph, random));
    const NamedTensors values = rounded(inputs);
    const Plan plan = make_plan("coda", graph);
    const Execution chunks = execute(plan, inputs, executor_gpu(), threads(2));

    ScanCase step = whole;
    step.shape.tokens = step.shape.chunk = 1;
    const Graph one = test::scan_graph(step);
    const Plan step_plan = make_plan("coda", one);
    NamedTensors now{{"state", values.at("state")}};
    std::vector<double> y;
    for (std::int64_t t = 0; t < whole.shape.tokens; ++t) {
      for (const char* name : {"x", "log_decay", "k", "q"}) {
        const std::vector<double>& all = values.at(name);
        const auto cols = static_cast<std::ptrdiff_t>(all.size()) / whole.shape.tokens;
        now[name] = {all.begin() + t * cols, all.begin() + (t + 1) * cols};
      }
      const Execution run = execute(step_plan, round_inputs(one, now), executor_gpu(), threads(1));
      const std::vector<double> row = result_of(step_plan, run, "y");
      y.insert(y.end(), row.begin(), row.end());
      now["state"] = result_of(step_plan, run, "state_after");
    }
    // Either way is as far from fp64 as the tolerance says.
    const double allowed = 2 * tolerance(graph, graph.ops()[0]);
    EXPECT_EQ(disagreement(y, result_of(plan, chunks, "y"), allowed), "") << test::describe(whole);
    EXPECT_LT(relative_l2(now["state"], result_of(plan, chunks, "state_after")), allowed);
  }
}

// The state may be read and overwritten in place, as decoding does.
TEST(ExecuteScan, OverwritesItsStateInPlace) {
  std::mt19937 random(34);
  ScanCase c{.shape = {4, 2, 8, 16, 3, 10, 4}, .state = true, .state_after = true};
  const Graph apart = test::scan_graph(c);
  c.state_after = false;
  Graph graph = test::scan_graph(c);
  Op& op = graph.op(OpId{0});
  op.writes.push_back(op.reads[4]);
  const Inputs inputs = round_inputs(graph, test::scan_inputs(graph, random));
  const Plan plan = make_plan("per-operator", graph);
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  const Execution run = execute(plan, inputs, executor_gpu(), threads(2));
  expect_predicted_bytes(plan, run, "in place");
  const Plan other = make_plan("per-operator", apart);
  const Execution want = execute(other, inputs, executor_gpu(), threads(2));
  const PlanEstimate in_place = simulate(plan, executor_gpu(), Fidelity::hierarchy);
  const PlanEstimate elsewhere = simulate(other, executor_gpu(), Fidelity::hierarchy);
  EXPECT_EQ(in_place.kernels[0].compulsory, elsewhere.kernels[0].compulsory);
  EXPECT_EQ(in_place.limits.compulsory, elsewhere.limits.compulsory);
  EXPECT_EQ(result_of(plan, run, "state"), result_of(other, want, "state_after"));
  EXPECT_EQ(result_of(plan, run, "y"), result_of(other, want, "y"));
}

TEST(ExecuteConvRows, RandomShapesAgreeWithTheReferenceInPredictedBytes) {
  std::mt19937 random(35);
  for (int round = 0; round < 120; ++round) {
    const ConvolutionShape s{test::pick(random, 1, 5), test::pick(random, 1, 40),
                             test::pick(random, 1, 6)};
    const std::int64_t cols =
        random() % 4 == 0 ? test::pick(random, 257, 600) : test::pick(random, 2, 40);
    const bool before = s.taps > 1 && random() % 2 == 0;
    check_operator(test::conv_graph(s, cols, before, random() % 2 == 0 ? Dtype::bf16 : Dtype::fp32),
                   random,
                   "B " + std::to_string(s.batch) + " T " + std::to_string(s.tokens) + " K " +
                       std::to_string(s.taps) + " C " + std::to_string(cols));
  }
}

// Executes a graph under a policy: bytes as predicted, its outputs as in fp64.
void check_graph(const Graph& graph, const std::string& policy, const Inputs& inputs,
                 const std::string& what) {
  const Plan plan = make_plan(policy, graph);
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << what;
  const TensorValues want = run_reference(graph, rounded(inputs));
  const Execution run = execute(plan, inputs, executor_gpu(), threads(2));
  expect_predicted_bytes(plan, run, policy + ' ' + what);
  double allowed = 0;
  for (const Op& op : graph.ops()) allowed += tolerance(graph, op);
  for (const Tensor& t : graph.tensors()) {
    if (t.role != Role::output || t.rows * t.cols < 2) continue;
    EXPECT_EQ(disagreement(result_of(plan, run, t.name), want.at(t.name), allowed), "")
        << t.name << ' ' << policy << ' ' << what;
  }
}

// One number a row, one a column, a table's worth of columns that begin within a head: what tiles
// of one head and chunk load of them is counted as it is asked for.
TEST(ExecuteScan, EpiloguesLoadWhatTheirTilesNeed) {
  std::mt19937 random(37);
  for (int round = 0; round < 15; ++round) {
    ScanCase c = test::random_scan(random);
    c.shape.head_width = test::pick(random, 2, 13);
    c.dtype = Dtype::fp32;
    const ScanShape& s = c.shape;
    const std::int64_t rows = s.batch * s.tokens;
    const std::int64_t cols = s.heads * s.head_width;
    test::GraphMaker g;
    g.graph = test::scan_graph(c);
    const TensorId y = g.graph.find_tensor("y").value();
    g.graph.tensor(y).role = random() % 2 == 0 ? Role::activation : Role::output;
    const Operand whole = g.graph.whole(y);
    const Operand r = g.add("r", Role::input, rows, 1, Dtype::fp32);
    const Operand b = g.add("b", Role::weight, 1, cols, Dtype::fp32);
    const Operand z = g.add("z", Role::input, rows, cols, Dtype::fp32);
    const Operand scaled = g.step("scaled", operators::mul_rows, {whole, r}, cols, Dtype::fp32);
    const Operand biased = g.step("biased", operators::bias_add, {scaled, b}, cols, Dtype::fp32);
    g.step("gated", operators::mul, {biased, z}, cols, Dtype::fp32, {}, Role::output);
    const std::int64_t begin = test::pick(random, 0, cols - 2);
    const std::int64_t count = test::pick(random, 2, cols - begin);
    g.step("part", operators::silu, {g.columns(whole, begin, count)}, count, Dtype::fp32, {},
           Role::output);
    const Inputs inputs = round_inputs(g.graph, test::scan_inputs(g.graph, random));
    for (const char* policy : {"coda", "torch-compile", "whole-block"})
      check_graph(g.graph, policy, inputs, test::describe(c));
    const Plan plan = make_plan("coda", g.graph);
    EXPECT_GE(plan.kernels[0].ops.size(), 4U) << test::describe(c);
  }
}

// A norm keeps whole rows, one a tile: each takes the rows above it again.
TEST(ExecuteConvRows, JoinsAKernelOfRows) {
  std::mt19937 random(38);
  for (int round = 0; round < 20; ++round) {
    const ConvolutionShape s{test::pick(random, 1, 3), test::pick(random, 1, 20), 4};
    test::GraphMaker g;
    g.graph = test::conv_graph(s, 48, round % 2 == 0);
    const TensorId y = g.graph.find_tensor("y").value();
    g.graph.tensor(y).role = Role::activation;
    const Operand w = g.add("norm_weight", Role::weight, 1, 48, Dtype::fp32);
    const Operand active = g.step("active", operators::silu, {g.graph.whole(y)}, 48, Dtype::fp32);
    g.step("normed", operators::rms_norm, {active, w}, 48, Dtype::fp32, NormEps{1e-5},
           Role::output);
    const Inputs inputs = round_inputs(g.graph, test::scan_inputs(g.graph, random));
    for (const char* policy : {"torch-compile", "coda", "eager"})
      check_graph(g.graph, policy, inputs, "rows");
    const Plan plan = make_plan("torch-compile", g.graph);
    ASSERT_EQ(plan.kernels.size(), 1U);
    const std::int64_t rows = s.batch * s.tokens;
    std::int64_t loaded = 0;  // rows of x, one tile after the other
    for (std::int64_t row = 0; row < rows; ++row)
      loaded += 1 + std::min<std::int64_t>(3, row % s.tokens);
    EXPECT_EQ(byte_counts(plan.graph, requested_bytes(plan.graph, plan.kernels[0])).at("x").first,
              loaded * 48 * 4);
  }
}

// fp32 as well, so that a small mistake cannot hide behind rounding.
class MixerBlock : public testing::TestWithParam<std::string> {
 protected:
  static void check(const ScanShape& shape, Dtype dtype) {
    const Graph graph = test::mixer_graph(shape, 48, 4, dtype);
    const Plan plan = make_plan(GetParam(), graph);
    const std::string what = GetParam() + " " + name_of(dtype) + " " + test::describe({shape});
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
    const Inputs inputs = random_storage(graph, 9, {}, {.outliers = 3});
    const TensorValues want = run_reference(graph, rounded(inputs));
    const Execution run =
        execute(plan, prepare_inputs(plan, inputs, 9, {}), executor_gpu(), threads(2));
    expect_predicted_bytes(plan, run, what);
    // Every operator's error reaches the output about once.
    double allowed = 0;
    for (const Op& op : graph.ops()) allowed += tolerance(graph, op);
    const std::vector<double> got = result_of(plan, run, "output");
    EXPECT_EQ(disagreement(got, want.at("output"), allowed), "") << what;
    EXPECT_NE(disagreement(std::vector<double>(got.size()), want.at("output"), allowed), "");
    const PlanEstimate predicted = simulate(plan, executor_gpu(), Fidelity::hierarchy);
    EXPECT_GE(predicted.time, predicted.limits.time);
    EXPECT_TRUE(std::isfinite(predicted.time.value()));
  }
};

INSTANTIATE_TEST_SUITE_P(Policies, MixerBlock, testing::ValuesIn(all_policies()),
                         [](const auto& p) { return as_test_name(p.param); });

TEST_P(MixerBlock, IsPlannedPredictedAndExecuted) {
  for (const ScanShape& shape :
       {ScanShape{4, 2, 16, 12, 2, 45, 8}, ScanShape{3, 1, 20, 8, 1, 37, 1},
        ScanShape{2, 2, 7, 5, 3, 1, 64}, ScanShape{6, 3, 11, 9, 1, 130, 64}}) {
    check(shape, Dtype::bf16);
    check(shape, Dtype::fp32);
  }
}

}  // namespace
}  // namespace fuseline::executor
