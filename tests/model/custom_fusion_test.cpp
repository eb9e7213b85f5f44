// Policy `custom` as it stands in for another policy: an edit by hand starts there.
#include "model/custom_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using NameSet = std::set<std::string>;

NameSet operators_of(const Plan& plan) {
  NameSet names;
  for (const Op& op : plan.graph.ops()) names.insert(op.name);
  return names;
}

// "producer -> consumer" of every edge.
NameSet edges_of(const Plan& plan) {
  NameSet names;
  for (const Edge& e : edges(plan.graph))
    names.insert(edge_text({plan.graph.op(e.from).name, plan.graph.op(e.to).name}));
  return names;
}

Plan plan_like(const Plan& plan, const Graph& graph) {
  const CustomFusion custom = custom_like(plan, graph);
  return make_custom_plan(graph, custom.rewrites, custom.on_chip);
}

// What is drawn of a policy's run is what a click on it edits: the same operators and edges.
TEST(CustomLike, HasTheGraphOfThePolicyInEveryPhase) {
  for (const ModelConfig& model : {test::tiny_llama(), test::tiny_gpt()}) {
    for (const Workload& work : {test::forward(2, 5), test::decode(2, 1, 7), test::train(2, 5)}) {
      const Graph graph = build_block(model, work);
      for (const PolicyInfo& p : policies()) {
        if (work.phase == Phase::train && !p.trains) continue;
        const Plan plan = make_plan(p.name, graph);
        const Plan like = plan_like(plan, graph);
        const std::string what = model.name + " " + name_of(work.phase) + " " + p.name;
        EXPECT_EQ(operators_of(like), operators_of(plan)) << what;
        EXPECT_EQ(edges_of(like), edges_of(plan)) << what;
        EXPECT_THAT(check_plan(like), IsEmpty()) << what;
      }
    }
  }
}

TEST(BackwardChoices, StandAmongTheRewritesOfAPlan) {
  const Graph graph = build_block(test::tiny_llama(), test::train(2, 5));
  EXPECT_THAT(make_plan("coda", graph).rewrites, Contains("recompute"));
  EXPECT_THAT(make_plan("eager", graph).rewrites, Contains("concatenate_slices"));
  EXPECT_THAT(make_plan("unfused", graph).rewrites, Contains("save_probabilities"));
  EXPECT_THAT(make_plan("per-operator", graph).rewrites, Not(Contains("recompute")));
  for (const char* name : {"recompute", "concatenate_slices", "save_probabilities"}) {
    EXPECT_THAT(rewrite_names(), Contains(name));
    EXPECT_NE(rewrite_summary(name), "") << name;
    EXPECT_THROW(make_custom_plan(build_block(test::tiny_llama(), test::forward(2, 5)), {name}, {}),
                 InputError)
        << name;
  }
}

// Online softmax has no probabilities to save.
TEST(BackwardChoices, AttentionThatSavesItsProbabilitiesIsNotFused) {
  const Graph graph = build_block(test::tiny_llama(), test::train(2, 5));
  const Plan plan = make_custom_plan(graph, {"save_probabilities"}, {});
  EXPECT_NE(test::find_kernel(plan, "softmax"), nullptr);
  EXPECT_THAT(check_plan(plan), IsEmpty());
  for (const OnChipEdge& edge : {OnChipEdge{"scores", "softmax"}, {"softmax", "context"}}) {
    try {
      static_cast<void>(make_custom_plan(graph, {"save_probabilities"}, {edge}));
      ADD_FAILURE() << edge_text(edge) << " was taken";
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), HasSubstr("cannot stay on chip"));
    }
  }
}

}  // namespace
}  // namespace fuseline
