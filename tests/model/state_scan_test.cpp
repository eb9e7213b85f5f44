// The scan as an operator: its reference, its counts, and what its programs refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/backward.h"
#include "model/lower.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "model/why_not.h"
#include "tests/model/plan_support.h"
#include "tests/model/reference_support.h"
#include "tests/model/scan_support.h"
#include "tests/support/rounds.h"

namespace fuseline {
namespace {

using test::ScanCase;
using test::reference::at;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y_t as the sum over all earlier tokens, without a state: Σ_s exp(log decays of (s, t]) (k_s·q_t)
// x_s, and the given state's share.
double result_by_pairs(const ScanCase& c, const NamedTensors& in, std::int64_t b, std::int64_t t,
                       std::int64_t h, std::int64_t p) {
  const ScanShape& s = c.shape;
  const std::int64_t keys = s.groups * s.state_width;
  const std::int64_t group = h / (s.heads / s.groups) * s.state_width;
  const auto row = [&](std::int64_t token) { return b * s.tokens + token; };
  double y = 0;
  double log = 0;
  for (std::int64_t from = t; from >= 0; --from) {
    double product = 0;
    for (std::int64_t n = 0; n < s.state_width; ++n)
      product +=
          at(in.at("k"), keys, row(from), group + n) * at(in.at("q"), keys, row(t), group + n);
    y += std::exp(log) * product *
         at(in.at("x"), s.heads * s.head_width, row(from), h * s.head_width + p);
    log += at(in.at("log_decay"), s.heads, row(from), h);
  }
  if (!c.state) return y;
  for (std::int64_t n = 0; n < s.state_width; ++n)
    y += std::exp(log) *
         at(in.at("state"), s.state_width, (b * s.heads + h) * s.head_width + p, n) *
         at(in.at("q"), keys, row(t), group + n);
  return y;
}

TEST(StateScan, ReferenceEqualsTheSumOverPairsOfTokens) {
  std::mt19937 random(17);
  for (int round = 0; round < test::rounds(60); ++round) {
    const ScanCase c = test::random_scan(random);
    const Graph graph = test::scan_graph(c);
    const NamedTensors in = test::scan_inputs(graph, random);
    const TensorValues values = run_reference(graph, in);
    const ScanShape& s = c.shape;
    std::vector<double> want;
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t t = 0; t < s.tokens; ++t)
        for (std::int64_t h = 0; h < s.heads; ++h)
          for (std::int64_t p = 0; p < s.head_width; ++p)
            want.push_back(result_by_pairs(c, in, b, t, h, p));
    ASSERT_LT(relative_l2(values.at("y"), want), 1e-12) << test::describe(c);
  }
}

// Two halves, the second from the state behind the first, are the whole.
TEST(StateScan, ReferenceGoesOnFromItsState) {
  std::mt19937 random(18);
  for (int round = 0; round < 30; ++round) {
    ScanCase whole = test::random_scan(random);
    whole.shape.batch = 1;
    whole.shape.tokens = test::pick(random, 2, 30);
    whole.state = whole.state_after = true;
    const std::int64_t cut = test::pick(random, 1, whole.shape.tokens - 1);
    const Graph graph = test::scan_graph(whole);
    const NamedTensors in = test::scan_inputs(graph, random);
    const TensorValues want = run_reference(graph, in);
    std::vector<double> y;
    std::vector<double> state = in.at("state");
    for (const auto& [begin, end] :
         {std::pair<std::int64_t, std::int64_t>{0, cut}, {cut, whole.shape.tokens}}) {
      ScanCase part = whole;
      part.shape.tokens = end - begin;
      const Graph part_graph = test::scan_graph(part);
      NamedTensors part_in;
      for (const auto& [name, values] : in) {
        if (name == "state") continue;
        const auto cols = static_cast<std::ptrdiff_t>(values.size()) / whole.shape.tokens;
        part_in[name] = {values.begin() + begin * cols, values.begin() + end * cols};
      }
      part_in["state"] = state;
      const TensorValues got = run_reference(part_graph, part_in);
      state = got.at("state_after");
      y.insert(y.end(), got.at("y").begin(), got.at("y").end());
    }
    ASSERT_EQ(y, want.at("y")) << test::describe(whole);
    ASSERT_EQ(state, want.at("state_after"));
  }
}

// Operations of the chunks, counted token by token and pair by pair.
TEST(StateScan, FlopsEqualACountOfEachChunk) {
  std::mt19937 random(19);
  for (int round = 0; round < 100; ++round) {
    const ScanCase c = test::random_scan(random);
    const ScanShape& s = c.shape;
    std::int64_t count = 0;
    for (std::int64_t first = 0; first < s.tokens; first += s.chunk) {
      for (std::int64_t t = first; t < std::min(s.tokens, first + s.chunk); ++t) {
        for (std::int64_t from = first; from <= t; ++from)
          count += 2 * s.state_width + 2 + 2 * s.head_width;
        count += 2 * s.head_width * s.state_width + 2 * s.head_width;  // from the state
        count += 2 * s.head_width * s.state_width + s.state_width;     // to the state
      }
      count += s.head_width * s.state_width;  // the state decays
    }
    const Graph graph = test::scan_graph(c);
    EXPECT_EQ(flops(graph, graph.ops()[0]), Flops(count * s.batch * s.heads)) << test::describe(c);
  }
}

TEST(StateScan, SaysWhatItIs) {
  const ScanCase c{.shape = {4, 2, 8, 16, 2, 10, 4}, .state = true, .state_after = true};
  const Graph graph = test::scan_graph(c);
  const Plan plan = make_plan("coda", graph);
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_EQ(plan.kernels[0].kind, KernelKind::scan);
  EXPECT_EQ(std::string(name_of(plan.kernels[0].kind)), "scan");
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  const std::string text = print_program(plan.graph, plan.kernels[0].phases[0]);
  EXPECT_THAT(text, HasSubstr("y = scan(x[20,32], log_decay[20,4], k[20,32], q[20,32], "
                              "state[64,16])"));
  EXPECT_THAT(text, HasSubstr("chunks of 4 tokens"));
  EXPECT_THAT(text, HasSubstr("store state_after[64,16] = state"));
  const auto names = [&](const std::vector<Operand>& operands) {
    std::vector<std::string> all;
    for (const Operand& o : operands) all.push_back(graph.tensor(o.tensor).name);
    return all;
  };
  EXPECT_THAT(names(loads(plan.kernels[0].phases[0])),
              ElementsAre("x", "log_decay", "k", "q", "state"));
  EXPECT_THAT(names(stores(plan.kernels[0].phases[0])), ElementsAre("state_after", "y"));
}

TEST(StateScan, ChecksTheShapesOfItsOperandsByName) {
  const ScanCase c{.shape = {4, 2, 8, 16, 2, 10, 4}, .state = true, .state_after = true};
  const Graph graph = test::scan_graph(c);
  const Program good = lower(graph, "scan", {OpId{0}});
  ASSERT_EQ(check_program(graph, good), std::vector<std::string>{});
  const auto problems = [&](auto change) {
    Program bad = good;
    change(std::get<ScanMainloop>(bad.mainloop));
    return check_program(graph, bad);
  };
  EXPECT_THAT(problems([](ScanMainloop& m) { m.x.cols = 31; }),
              Contains("scan: scanned operand x = x is [20, 31], not [20, 32]"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.log_decay.rows = 19; }),
              Contains("scan: decay = log_decay is [19, 4], not [20, 4]"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.k.cols = 16; }),
              Contains("scan: key = k is [20, 16], not [20, 32]"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.q.cols = 16; }),
              Contains("scan: query = q is [20, 16], not [20, 32]"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.state->rows = 32; }),
              Contains("scan: state = state is [32, 16], not [64, 16]"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.state_after->cols = 8; }),
              Contains("scan: state = state_after is [64, 8], not [64, 16]"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.shape.groups = 3; }),
              Contains("scan: 4 heads do not share 3 groups evenly"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.shape.chunk = 0; }),
              Contains("scan: a chunk of 0 tokens"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.shape.tokens = 0; }),
              Contains("scan: a dimension of the scan is below 1"));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.state = m.x; }),
              Contains("scan: state = x is [20, 32], not [64, 16]"));
}

TEST(StateScan, StatesAndDecaysAreFp32) {
  ScanCase c{.shape = {2, 1, 8, 16, 1, 10, 4}, .state = true, .state_after = true};
  Graph graph = test::scan_graph(c);
  for (const char* name : {"log_decay", "state", "state_after"}) {
    Graph wrong = graph;
    wrong.tensor(wrong.find_tensor(name).value()).dtype = Dtype::bf16;
    EXPECT_THAT(check_program(wrong, lower(wrong, "scan", {OpId{0}})),
                Contains(std::string("scan: ") + name + " is not fp32"));
  }
}

TEST(StateScan, HasNoGradientYetAndSaysSo) {
  EXPECT_EQ(operators::state_scan.gradient.rule, nullptr);
  EXPECT_NE(std::string(operators::state_scan.gradient.why_none), "");
}

// What follows a scan joins it where a tile of one head and chunk can do it, else it says why not.
TEST(StateScan, TakesAnEpilogueOfElementWiseOperators) {
  const Graph graph = test::mixer_graph({4, 2, 8, 16, 2, 10, 4}, 24, 4, Dtype::bf16);
  const auto id = [&](const char* name) { return graph.find_op(name).value(); };
  EXPECT_EQ(why_no_program(graph, {id("y_op"), id("with_skip_op")}, {}), "");
  EXPECT_EQ(why_no_program(graph, {id("y_op"), id("skip_op"), id("with_skip_op")}, {}), "");
  EXPECT_THAT(why_no_program(graph, {id("mixed_op"), id("y_op")}, {}),
              HasSubstr("would make the operand of y_op's mainloop"));
  EXPECT_THAT(why_no_program(graph, {id("y_op"), id("normed_op")}, {}),
              HasSubstr("normed_op crosses heads or chunks"));
  EXPECT_THAT(why_no_program(graph, {id("y_op"), id("output_op")}, {}),
              HasSubstr("second mainloop"));
  EXPECT_THAT(why_no_program(graph, {id("projected_op"), id("conv_op")}, {}),
              HasSubstr("conv_op reads rows above its tile"));
  EXPECT_THAT(why_no_program(graph, {id("conv_op"), id("biased_op"), id("mixed_op")}, {}), "");
}

TEST(StateScan, StaysAKernelOfItsOwnUnderEveryPolicy) {
  const Graph graph = test::mixer_graph({4, 2, 8, 16, 2, 10, 4}, 24, 4, Dtype::bf16);
  for (const PolicyInfo& policy : policies()) {
    const Plan plan = make_plan(policy.name, graph);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << policy.name;
    int scans = 0;
    for (const Kernel& kernel : plan.kernels)
      for (const Program& phase : kernel.phases)
        scans += std::holds_alternative<ScanMainloop>(phase.mainloop) ? 1 : 0;
    EXPECT_EQ(scans, 1) << policy.name;
  }
}

TEST(StateScan, CodaPutsGateAndSkipIntoTheScansEpilogue) {
  const Graph graph = test::mixer_graph({4, 2, 8, 16, 2, 10, 4}, 24, 4, Dtype::bf16);
  const Plan plan = make_plan("coda", graph);
  const Kernel* scan = test::find_kernel(plan, "y_op");
  ASSERT_NE(scan, nullptr) << testing::PrintToString(test::kernel_names(plan));
  EXPECT_EQ(scan->implementation, Implementation::chunked_scan);
  std::vector<std::string> ops;
  for (const OpId id : scan->ops) ops.push_back(plan.graph.op(id).name);
  EXPECT_THAT(ops, Contains("with_skip_op"));
  EXPECT_THAT(ops, Contains("gated_op"));
  const Plan eager = make_plan("eager", graph);
  EXPECT_EQ(test::find_kernel(eager, "y_op")->ops.size(), 1U);
  EXPECT_EQ(test::find_kernel(eager, "y_op")->implementation, Implementation::library_scan);
  EXPECT_EQ(test::find_kernel(eager, "conv_op")->kind, KernelKind::conv);
}

// Scripts read these names in the JSON of predictions.
TEST(KernelKinds, HaveTheNamesThatPredictionsShow) {
  std::string names;
  for (const KernelKind kind : all_kernel_kinds()) names += std::string(name_of(kind)) + ' ';
  EXPECT_EQ(names, "gemm attention norm pointwise reduction block scan conv route collective ");
}

TEST(AllReduce, IsDeclaredAndRefusedByName) {
  test::GraphMaker g;
  const Operand x = g.add("x", Role::input, 4, 8, Dtype::bf16);
  g.step("y", operators::all_reduce, {x}, 8, Dtype::bf16, Devices{8}, Role::output);
  EXPECT_EQ(flops(g.graph, g.graph.ops()[0]), Flops(4 * 8 * 7));
  for (const PolicyInfo& policy : policies()) {
    try {
      make_plan(policy.name, g.graph);
      FAIL() << policy.name;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().field, "y_op");
      EXPECT_EQ(error.problem().value, "all_reduce over 8 GPUs");
      EXPECT_THAT(error.problem().message, HasSubstr("several GPUs are not built yet"));
    }
  }
  EXPECT_THROW(run_reference(g.graph, {{"x", std::vector<double>(32, 1.0)}}), InputError);
  EXPECT_EQ(std::string(name_of(KernelKind::collective)), "collective");
}

}  // namespace
}  // namespace fuseline
