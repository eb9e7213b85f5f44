#include "gui/model/fusion_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "gui/model/history.h"
#include "model/bare_plan.h"
#include "model/blocks/block.h"
#include "tests/gui/model/gui_support.h"
#include "tests/support/rounds.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Graph block() {
  const PredictionCase c = resolve(test::small_setup());
  return build_block(c.model, c.workload);
}

Plan plan_of(const CustomFusion& custom) {
  return make_custom_plan(block(), custom.rewrites, custom.on_chip);
}

bool offers(const EditOutcome& outcome, const std::string& text) {
  return std::ranges::any_of(outcome.suggestions, [&](const Suggestion& s) {
    return s.text.find(text) != std::string::npos;
  });
}

void expect_suggestions_are_legal(const EditOutcome& outcome) {
  for (const Suggestion& s : outcome.suggestions) {
    EXPECT_EQ(why_illegal(block(), s.custom), "") << s.text;
  }
}

TEST(FusionEdits, ALegalEdgeIsFusedAndSplitAgain) {
  const OnChipEdge edge{"down", "residual2"};
  const EditOutcome fused = toggle_edge(block(), {}, edge);
  ASSERT_TRUE(fused.legal) << fused.reason;
  EXPECT_EQ(fused.what, "fuse down → residual2");
  EXPECT_TRUE(share_kernel(plan_of(fused.custom), edge));
  const EditOutcome split = toggle_edge(block(), fused.custom, edge);
  ASSERT_TRUE(split.legal);
  EXPECT_EQ(split.custom, CustomFusion{});
}

TEST(FusionEdits, AnIllegalEdgeComesBackWithTheCheckersWordsAndTheRewriteThatHelps) {
  const EditOutcome outcome = toggle_edge(block(), {}, {"gate_up", "swiglu"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_EQ(outcome.custom, CustomFusion{});
  EXPECT_THAT(outcome.reason, HasSubstr("the pairs of swiglu are in different tiles"));
  EXPECT_TRUE(offers(outcome, "interleave_gate_up"));
  expect_suggestions_are_legal(outcome);
}

TEST(FusionEdits, ASuggestionMayTakeAnotherEdgeAway) {
  // oproj and residual1 in one kernel: norm2 would need the full row of its tile.
  const CustomFusion custom{{}, {{"oproj", "residual1"}}};
  const EditOutcome outcome = fuse_edge(block(), custom, {"residual1", "norm2"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_THAT(outcome.reason, HasSubstr("norm2 needs a full row"));
  EXPECT_TRUE(offers(outcome, "without oproj → residual1"));
  expect_suggestions_are_legal(outcome);
}

TEST(FusionEdits, ARewriteMaySpareTheTensorThatCouldNotStayOnChip) {
  const EditOutcome outcome = fuse_edge(block(), {}, {"norm2", "gate_up"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_TRUE(offers(outcome, "the rewrite split_norm instead: then no xn2 is made"));
  expect_suggestions_are_legal(outcome);
}

TEST(FusionEdits, TheReasonIsAboutTheEdgeThatWasClicked) {
  const CustomFusion custom{{}, {{"oproj", "residual1"}}};
  const EditOutcome outcome = fuse_edge(block(), custom, {"context", "oproj"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_THAT(outcome.reason, ::testing::StartsWith("context → oproj cannot stay on chip"));
}

TEST(FusionEdits, WithoutReasonsThePlanHasTheSameKernels) {
  const CustomFusion custom{{"split_norm"}, {{"oproj", "residual1"}, {"down", "residual2"}}};
  const Plan with = make_custom_plan(block(), custom.rewrites, custom.on_chip);
  const Plan without = make_bare_plan(block(), custom);
  EXPECT_FALSE(with.notes.empty());
  EXPECT_TRUE(without.notes.empty());
  ASSERT_EQ(with.kernels.size(), without.kernels.size());
  for (std::size_t i = 0; i < with.kernels.size(); ++i) {
    EXPECT_EQ(with.kernels[i].name, without.kernels[i].name);
    EXPECT_EQ(with.kernels[i].ops, without.kernels[i].ops);
  }
  EXPECT_EQ(with.homes, without.homes);
}

TEST(FusionEdits, AttentionStaysTogether) {
  const EditOutcome outcome = split_edge(block(), {}, {"scores", "softmax"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_THAT(outcome.reason, HasSubstr("attention"));
}

TEST(FusionEdits, UnknownOperatorsAreNamedWithTheNearest) {
  const EditOutcome outcome = fuse_edge(block(), {}, {"gate_upp", "swiglu"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_THAT(outcome.reason, HasSubstr("did you mean gate_up?"));
}

TEST(FusionEdits, ALassoFusesEveryInnerEdge) {
  const EditOutcome outcome =
      fuse_all(block(), {{"interleave_gate_up"}, {}}, {"gate_up", "swiglu", "qkv"});
  ASSERT_TRUE(outcome.legal) << outcome.reason;
  EXPECT_THAT(outcome.custom.on_chip, Contains(OnChipEdge{"gate_up", "swiglu"}));
  EXPECT_EQ(outcome.custom.on_chip.size(), 1U);
}

TEST(FusionEdits, ALassoThatIsIllegalOffersItsLargestLegalPart) {
  const EditOutcome outcome =
      fuse_all(block(), {{"interleave_gate_up"}, {}}, {"gate_up", "swiglu", "down", "residual2"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_THAT(outcome.reason, Not(IsEmpty()));
  ASSERT_THAT(outcome.suggestions, Not(IsEmpty()));
  EXPECT_EQ(outcome.suggestions.front().custom.on_chip.size(), 2U);
  expect_suggestions_are_legal(outcome);
}

TEST(FusionEdits, ALassoAroundNothingThatCouldBeJoinedSaysSo) {
  const EditOutcome outcome = fuse_all(block(), {}, {"qkv", "down"});
  EXPECT_FALSE(outcome.legal);
  EXPECT_THAT(outcome.reason, HasSubstr("no two of the operators"));
}

TEST(FusionEdits, TakingARewriteAwayDropsTheEdgesThatNeedIt) {
  const CustomFusion custom{{"interleave_gate_up"}, {{"gate_up", "swiglu"}, {"down", "residual2"}}};
  const EditOutcome outcome = toggle_rewrite(block(), custom, "interleave_gate_up");
  ASSERT_TRUE(outcome.legal);
  EXPECT_THAT(outcome.custom.rewrites, IsEmpty());
  EXPECT_EQ(outcome.custom.on_chip, (std::vector<OnChipEdge>{{"down", "residual2"}}));
  EXPECT_THAT(outcome.reason, HasSubstr("gate_up → swiglu"));
}

TEST(FusionEdits, RewritesSayWhyTheyDoNotApply) {
  bool some_on = false, some_off = false;
  for (const RewriteChoice& choice : rewrite_choices(block(), {{"interleave_gate_up"}, {}})) {
    EXPECT_EQ(choice.on, choice.name == "interleave_gate_up");
    EXPECT_EQ(choice.can_toggle, choice.why_not.empty());
    EXPECT_THAT(choice.summary, Not(IsEmpty()));
    (choice.can_toggle ? some_on : some_off) = true;
  }
  EXPECT_TRUE(some_on);
  EXPECT_TRUE(some_off);
}

TEST(FusionEdits, AnyRewriteCanBeAskedAboutInEveryPhase) {
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train}) {
    PredictionCase c = resolve(with_phase(test::small_setup(), phase));
    const Graph graph = build_block(c.model, c.workload);
    for (const char* policy : {"eager", "coda"}) {
      const CustomFusion custom = custom_like(make_plan(policy, graph), graph);
      EXPECT_EQ(why_illegal(graph, custom), "") << policy << " " << name_of(phase);
      for (const RewriteChoice& choice : rewrite_choices(graph, custom)) {
        const EditOutcome outcome = toggle_rewrite(graph, custom, choice.name);
        EXPECT_EQ(outcome.legal, choice.can_toggle) << choice.name;
        if (outcome.legal) {
          EXPECT_EQ(why_illegal(graph, outcome.custom), "") << choice.name;
        }
      }
    }
  }
}

TEST(CustomLike, RebuildsThePoliciesItCanExpress) {
  for (const char* policy : {"per-operator", "tensorrt-llm", "coda", "xla"}) {
    const Plan plan = make_plan(policy, block());
    const CustomFusion custom = custom_like(plan, block());
    EXPECT_EQ(why_illegal(block(), custom), "") << policy;
    EXPECT_EQ(plan_of(custom).kernels.size(), plan.kernels.size()) << policy;
  }
  for (const PolicyInfo& p : policies()) {
    EXPECT_EQ(why_illegal(block(), custom_like(make_plan(p.name, block()), block())), "") << p.name;
  }
}

// Random clicks and lassos, legal or not: an illegal one changes nothing, a legal one gives a legal
// plan in which the edge is as asked for, and undo goes back through exactly the same documents.
TEST(FusionEditsProperty, EveryEditIsLegalAndUndoReturnsEachDocumentExactly) {
  std::mt19937 random(1);
  const Graph graph = block();
  Document document = test::small_document({"eager"});
  const RunId custom = document.runs.add({.policy = kCustomPolicy});
  History history(document);
  std::vector<Document> past;
  int legal = 0, illegal = 0;
  for (int i = 0; i < fuseline::test::rounds(60); ++i) {
    const CustomFusion now = history.document().runs.at(custom).custom;
    const Plan plan = make_custom_plan(graph, now.rewrites, now.on_chip);
    const std::vector<Edge> all = edges(plan.graph);
    const Edge& e = all[random() % all.size()];
    const OnChipEdge edge{plan.graph.op(e.from).name, plan.graph.op(e.to).name};
    const bool fused = share_kernel(plan, edge);
    const bool rewrites = i % 10 == 9;
    const EditOutcome outcome =
        rewrites ? toggle_rewrite(graph, now, i % 20 == 9 ? "interleave_gate_up" : "merge_rope")
                 : toggle_edge(graph, now, edge);
    if (!outcome.legal) {
      ++illegal;
      EXPECT_EQ(outcome.custom, now);
      EXPECT_THAT(outcome.reason, Not(IsEmpty()));
      expect_suggestions_are_legal(outcome);
      continue;
    }
    ++legal;
    EXPECT_EQ(why_illegal(graph, outcome.custom), "");
    if (!rewrites) {
      EXPECT_NE(share_kernel(
                    make_custom_plan(graph, outcome.custom.rewrites, outcome.custom.on_chip), edge),
                fused);
    }
    Document next = history.document();
    next.runs.set_custom(custom, outcome.custom);
    if (next == history.document()) continue;
    past.push_back(history.document());
    history.change(next, outcome.what);
  }
  EXPECT_GT(legal, fuseline::test::rounds(60) / 6);
  EXPECT_GT(illegal, fuseline::test::rounds(60) / 6);
  const Document last = history.document();
  for (auto before = past.rbegin(); before != past.rend(); ++before) {
    ASSERT_TRUE(history.undo());
    EXPECT_EQ(history.document(), *before);
  }
  EXPECT_FALSE(history.undo());
  while (history.redo()) {
  }
  EXPECT_EQ(history.document(), last);
}

}  // namespace
}  // namespace fuseline::gui
