#include "sim/verdict/verdict.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "sim/gpu/plan_target.h"
#include "sim/verdict/choices.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

PredictionCase case_of(const std::string& model, const std::string& gpu, Workload workload) {
  return {.model = load_model(model), .gpu = load_gpu(gpu), .workload = workload};
}

const EdgeVerdict& edge_of(const BlockVerdict& v, const std::string& text) {
  const auto at = std::ranges::find_if(
      v.edges, [&](const EdgeVerdict& e) { return edge_text(e.edge) == text; });
  if (at == v.edges.end()) throw InternalError("no edge " + text);
  return *at;
}

// The gain of an edge is that of the two plans, simulated by hand.
TEST(BlockVerdicts, GainIsThatOfTwoCustomPlans) {
  const PredictionCase c = case_of("tinyllama", "h200", forward(3, 333));
  const auto v = verdict_of_block(c, {.turnings = false});
  ASSERT_TRUE(v);
  const EdgeVerdict& e = edge_of(*v, "oproj -> residual1");
  ASSERT_TRUE(e.gain);
  EXPECT_FALSE(e.kept);
  CustomFusion with = v->base;
  with.on_chip.push_back({"oproj", "residual1"});
  const auto time = [&](const CustomFusion& custom) {
    const Plan plan = make_plan(kCustomPolicy, c.model, c.workload, custom, plan_target(c.gpu));
    return simulate(plan, c.gpu, Fidelity::hierarchy).time;
  };
  EXPECT_EQ(e.gain->without, time(v->base));
  EXPECT_EQ(e.gain->with, time(with));
  // Nothing else than the two operators' kernels and what L2 keeps for others changes.
  const double whole = (e.gain->without - e.gain->with).value();
  EXPECT_NEAR((e.saved - e.added).value(), whole, 0.03 * e.saved.value());
}

// On top of coda the same edge is there, and leaving it out costs what keeping it gains.
TEST(BlockVerdicts, OnTopOfCodaTakesEdgesAway) {
  const auto v = verdict_of_block(case_of("tinyllama", "h200", forward(8, 2048)),
                                  {.on = "coda", .turnings = false});
  ASSERT_TRUE(v);
  const EdgeVerdict& e = edge_of(*v, "down -> residual2");
  EXPECT_TRUE(e.kept);
  ASSERT_TRUE(e.gain);
  EXPECT_EQ(e.gain->with, v->base_time);
  EXPECT_LT(e.hbm_bytes, 0);  // the output of the GEMM is not stored and read again
}

TEST(BlockVerdicts, RefusedEdgesSayWhatLimitsThem) {
  const auto v =
      verdict_of_block(case_of("llama3-8b", "h200", forward(1, 100)), {.turnings = false});
  ASSERT_TRUE(v);
  EXPECT_EQ(edge_of(*v, "norm2 -> gate_up").limit.word, "a full row");
  EXPECT_EQ(edge_of(*v, "context -> oproj").limit.word, "a second mainloop");
  EXPECT_EQ(edge_of(*v, "swiglu -> down").limit.word, "recomputation");
  EXPECT_FALSE(edge_of(*v, "swiglu -> down").gain);
  // SwiGLU's pairs lie in two tiles, until the rewrite that brings them together.
  EXPECT_EQ(edge_of(*v, "gate_up -> swiglu").rewrite, "interleave_gate_up");
  EXPECT_TRUE(edge_of(*v, "gate_up -> swiglu").gain);
}

// Every verdict follows from the gain and its band, and bands of an edge are narrower than those
// of the part of the plan that it changes.
TEST(BlockVerdicts, FollowsFromTheBand) {
  const auto v = verdict_of_block(
      case_of("llama2-7b", "a100-sxm-80gb", decode(16, 1, 3000)),
      {.policies = {"unfused", "per-operator", "coda", "eager"}, .turnings = false});
  ASSERT_TRUE(v);
  ASSERT_EQ(v->policies.size(), 3U);  // but the one that all are compared with
  std::vector<FusionGain> gains;
  for (const PolicyVerdict& p : v->policies) gains.push_back(p.gain);
  for (const EdgeVerdict& e : v->edges) {
    if (e.gain) gains.push_back(*e.gain);
  }
  EXPECT_GT(gains.size(), 5U);
  for (const FusionGain& g : gains) {
    EXPECT_LE(g.band.low, 1);
    EXPECT_GE(g.band.high, 1);
    if (g.verdict == "the same") {
      EXPECT_EQ(g.gain(), 1);
      continue;
    }
    EXPECT_EQ(g.gain() * g.band.low > 1, g.verdict == "faster");
    EXPECT_EQ(g.gain() * g.band.high < 1, g.verdict == "slower");
  }
}

// At the size that a turning names, the gain is on the other side than below it.
TEST(BlockVerdicts, TurningsAreWhereTheGainChangesSides) {
  PredictionCase c = case_of("tinyllama", "h200", decode(8, 1, 1000));
  const auto v = verdict_of_block(c, {.policies = {"per-operator", "coda"}});
  ASSERT_TRUE(v);
  int found = 0;
  for (const EdgeVerdict& e : v->edges) {
    if (!e.gain) continue;
    ASSERT_EQ(e.turnings.size(), 2U);
    EXPECT_EQ(e.turnings[0].letter, "batch");
    EXPECT_EQ(e.turnings[1].letter, "context");
    for (const SizeTurning& t : e.turnings) {
      if (!t.turning.at) continue;
      PredictionCase at = c;
      at.workload = at_size(c.workload, t.letter, *t.turning.at);
      const auto there = verdict_of_block(at, {.turnings = false});
      ASSERT_TRUE(there);
      const double gain = edge_of(*there, edge_text(e.edge)).gain->gain();
      EXPECT_EQ(gain > 1, t.turning.gains_above) << edge_text(e.edge) << " " << t.letter;
      if (++found == 3) return;
    }
  }
}

TEST(BlockVerdicts, RowsOfABatchAreCountedTogether) {
  const auto v = verdict_of_block(case_of("tinyllama", "h200", forward(4, 100)), {});
  ASSERT_TRUE(v);
  const Turning& t = edge_of(*v, "oproj -> residual1").turnings.at(0).turning;
  EXPECT_EQ(t.searched.asked, 400);
  EXPECT_EQ(t.searched.least, 4);
  EXPECT_EQ(t.searched.most, 6400);
}

TEST(BlockVerdicts, CanBeStopped) {
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(verdict_of_block(case_of("tinyllama", "h200", forward(1, 64)), {.stop = &stop}));
}

// Every reason why neighbours of shipped blocks cannot share a kernel has a word, and the words
// name what the reason is about.
TEST(BlockVerdicts, ReasonsHaveWords) {
  EXPECT_EQ(limit_of_refusal("the mainloop's stages and 3 operand tiles exceed shared memory").word,
            "SMEM");
  EXPECT_EQ(limit_of_refusal("cycle through b: it needs the one and feeds the other").word,
            "a cycle");
  EXPECT_EQ(limit_of_refusal("a and b have different rows").word, "tiles that do not match");
  for (const char* model : {"llama3-8b", "gpt2-xl", "gemma2-9b", "deepseek-v2-lite", "jamba"}) {
    const ModelConfig config = load_model(model);
    for (const EdgeChoice& choice :
         edge_choices(build_block(config, forward(1, 64)), CustomFusion{}, Target{})) {
      if (choice.why_not.empty()) continue;
      const FusionLimit limit = limit_of_refusal(choice.why_not);
      EXPECT_TRUE(choice.why_not.ends_with(limit.why)) << choice.why_not;
      EXPECT_THAT(limit_words(), testing::Contains(limit.word));
    }
  }
}

// Every block that is shipped gets a verdict, in every phase that it has.
TEST(BlockVerdicts, EveryShippedModelHasOne) {
  for (const std::string& name : model_names()) {
    const PredictionCase c = case_of(name, "h200", forward(1, 65));
    const auto v = verdict_of_block(c, {.turnings = false});
    ASSERT_TRUE(v) << name;
    EXPECT_FALSE(v->edges.empty()) << name;
    for (const EdgeVerdict& e : v->edges) {
      EXPECT_FALSE(e.limit.why.empty()) << name << " " << edge_text(e.edge);
      EXPECT_THAT(limit_words(), testing::Contains(e.limit.word)) << name;
    }
  }
}

TEST(BlockVerdicts, TrainingHasEdgesOfTheBackwardPass) {
  Workload train = forward(1, 200);
  train.phase = Phase::train;
  const auto v = verdict_of_block(case_of("tinyllama", "h200", train),
                                  {.policies = {"per-operator", "coda"}, .turnings = false});
  ASSERT_TRUE(v);
  EXPECT_GT(v->edges.size(), 20U);
  EXPECT_GT(
      std::ranges::count_if(v->edges, [](const EdgeVerdict& e) { return e.gain.has_value(); }), 5);
}

}  // namespace
}  // namespace fuseline
