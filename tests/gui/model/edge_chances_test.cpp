#include "gui/model/edge_chances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/model/block_graph.h"
#include "gui/model/edge_preview.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

std::vector<OnChipEdge> edges_of(const RunView& view) {
  std::vector<OnChipEdge> edges;
  for (const GraphEdge& e : block_graph(view).edges)
    if (e.can_toggle) edges.push_back(e.choice);
  return edges;
}

TEST(EdgeChances, AreWhatAClickFinds) {
  const Document d = test::small_document({"eager"});
  ResultCache cache;
  const Results results = compute(d, cache);
  const RunView& view = results.runs[0];
  const std::vector<OnChipEdge> edges = edges_of(view);
  const auto chances = edge_chances(d, view.run.id, edges);
  ASSERT_EQ(chances.size(), edges.size());
  int legal = 0;
  for (const OnChipEdge& edge : edges) {
    const EdgeChance& chance = chances.at(edge_text(edge));
    const EdgePreview preview = preview_edge(d, view, edge, cache);
    EXPECT_EQ(chance.legal, preview.legal) << edge_text(edge);
    EXPECT_EQ(chance.splits, preview.splits) << edge_text(edge);
    EXPECT_EQ(chance.reason.empty(), chance.legal) << edge_text(edge);
    legal += chance.legal ? 1 : 0;
  }
  EXPECT_GE(legal, 2);
  EXPECT_LT(legal, static_cast<int>(edges.size()));
}

TEST(EdgeChances, StopWhenTheyAreAskedTo) {
  const Document d = test::small_document({"eager"});
  const Results results = test::results_of(d);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(edge_chances(d, results.runs[0].run.id, edges_of(results.runs[0]), stop.get_token()),
               Cancelled);
}

TEST(Savings, HaveTheColourOfWhatTheyAre) {
  PlanEstimate before;
  before.time = microseconds(100);
  before.hbm_read = Bytes(1000);
  PlanEstimate better = before, worse = before, less = before;
  better.time = microseconds(90);
  worse.time = microseconds(120);
  less.hbm_read = Bytes(800);
  EXPECT_EQ(saving_between(before, better).colour.role, ColourRole::better);
  EXPECT_EQ(saving_between(before, worse).colour.role, ColourRole::worse);
  EXPECT_EQ(saving_between(before, less).colour.role, ColourRole::better);  // as long, fewer bytes
  EXPECT_EQ(saving_between(before, before).colour.role, ColourRole::neutral);
}

}  // namespace
}  // namespace fuseline::gui
