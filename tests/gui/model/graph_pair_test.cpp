#include "gui/model/graph_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GraphPair, OfARunWithItselfHasNoDifference) {
  const Results results = test::results_of(test::small_document({"eager"}));
  const GraphPair pair = graph_pair(results.runs[0], results.runs[0]);
  EXPECT_TRUE(pair.only_left.empty());
  EXPECT_TRUE(pair.only_right.empty());
  EXPECT_THAT(pair.lines, ElementsAre(HasSubstr("the same")));
  EXPECT_THAT(to_table(pair).rows, IsEmpty());
}

TEST(GraphPair, AnEditIsTheOneDifference) {
  Document d = test::small_document({"per-operator"});
  const OnChipEdge edge{"down", "residual2"};
  CustomFusion fused;
  fused.on_chip = {edge};
  d.runs.add({.name = "apart", .policy = kCustomPolicy});
  d.runs.add({.name = "together", .policy = kCustomPolicy, .custom = fused});
  const Results results = test::results_of(d);
  const GraphPair pair = graph_pair(results.runs[1], results.runs[2]);
  EXPECT_THAT(pair.only_left.edges, ElementsAre(edge_text(edge)));
  EXPECT_THAT(pair.only_right.edges, ElementsAre(edge_text(edge)));
  EXPECT_THAT(pair.only_left.operators, IsEmpty());
  EXPECT_THAT(pair.lines, ElementsAre(HasSubstr("one kernel in together, apart in apart")));
  EXPECT_EQ(unlike_in(to_table(pair)), "");
}

TEST(GraphPair, OperatorsThatOneLacksAreNamed) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const GraphPair pair = graph_pair(results.runs[0], results.runs[1]);
  EXPECT_THAT(pair.only_left.operators, Contains("swiglu_silu"));
  EXPECT_THAT(pair.only_right.operators, Contains("finish_norm1"));
  EXPECT_THAT(pair.lines, Contains(HasSubstr("only in coda: ")));
}

TEST(GraphPair, OfTwoWorksIsRefused) {
  Document d = test::small_document({"eager", "coda"});
  d.runs.set_setup(d.runs.all()[0].id, d.setup);
  d.setup.workload.seq = 128;
  const Results results = test::results_of(d);
  EXPECT_THAT(graph_pair(results.runs[0], results.runs[1]).problem, HasSubstr("not compared"));
}

}  // namespace
}  // namespace fuseline::gui
