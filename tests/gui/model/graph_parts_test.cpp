#include "gui/model/graph_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/model/dot_layout.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

RunView view_of(const std::string& policy) {
  return test::results_of(test::small_document({policy})).runs.front();
}

std::vector<std::string> ids_of(const BlockGraph& graph) {
  std::vector<std::string> ids;
  for (const GraphNode& node : graph.nodes) ids.push_back(node.id);
  return ids;
}

Bytes bytes_of(const BlockGraph& graph) {
  Bytes sum{};
  for (const GraphEdge& e : graph.edges) sum += e.hbm_read;
  return sum;
}

TEST(GraphParts, ABlockIsAttentionAndMlp) {
  const BlockGraph graph = block_graph(view_of("eager"));
  EXPECT_THAT(part_names(graph), ElementsAre("attention", "MLP"));
  const auto parts = parts_of(view_of("eager").result->plan->graph);
  EXPECT_EQ(parts.at("qkv"), "attention");
  EXPECT_EQ(parts.at("residual1"), "attention");
  EXPECT_EQ(parts.at("norm2"), "MLP");
  EXPECT_EQ(parts.at("residual2"), "MLP");
}

// Rewrites give operators other names and places: their step of the block says the part.
TEST(GraphParts, PoliciesAgreeOnTheParts) {
  for (const char* policy : {"eager", "coda", "torch-compile", "per-operator"}) {
    const BlockGraph graph = block_graph(view_of(policy));
    EXPECT_THAT(part_names(graph), ElementsAre("attention", "MLP")) << policy;
  }
}

TEST(GraphParts, AClosedPartIsOneBoxAndKeepsWhatGoesInAndOut) {
  const BlockGraph whole = block_graph(view_of("eager"));
  const BlockGraph closed = with_closed_parts(whole, {"attention"});
  EXPECT_THAT(ids_of(closed), Contains("part:attention"));
  EXPECT_THAT(ids_of(closed), Not(Contains("op:qkv")));
  EXPECT_THAT(ids_of(closed), Not(Contains("tensor:w_qkv"))) << "its weights are inside";
  EXPECT_THAT(ids_of(closed), Contains("op:norm2"));
  EXPECT_THAT(ids_of(closed), Contains("tensor:x")) << "the block's input stays in sight";
  const auto into_norm = [](const GraphEdge& e) { return e.to == "op:norm2"; };
  const auto before = std::ranges::find_if(
      whole.edges, [&](const GraphEdge& e) { return into_norm(e) && !e.choice.from.empty(); });
  const auto after = std::ranges::find_if(
      closed.edges, [&](const GraphEdge& e) { return into_norm(e) && e.from == "part:attention"; });
  ASSERT_NE(before, whole.edges.end());
  ASSERT_NE(after, closed.edges.end());
  EXPECT_EQ(after->hbm_read, before->hbm_read);
  EXPECT_FALSE(after->can_toggle);
  EXPECT_LT(bytes_of(closed), bytes_of(whole));
  // It can be laid out, both ways.
  BlockGraph landscape = closed;
  landscape.landscape = true;
  for (const BlockGraph& g : {closed, landscape}) {
    const GraphLayout placed = layered_layout(g);
    EXPECT_EQ(placed.nodes.size(), g.nodes.size());
    for (const GraphEdge& e : g.edges) EXPECT_TRUE(placed.edges.contains({e.from, e.to}));
  }
  EXPECT_NE(dot_text(landscape), dot_text(closed));
}

TEST(GraphParts, WithAllPartsClosedOnlyTheBlocksOwnTensorsAreLeft) {
  const BlockGraph whole = block_graph(view_of("coda"));
  const BlockGraph closed = with_closed_parts(whole, {"attention", "MLP"});
  for (const GraphNode& node : closed.nodes)
    EXPECT_TRUE(node.id.starts_with("part:") || node.is_tensor) << node.id;
  EXPECT_EQ(std::ranges::count_if(closed.nodes, [](const GraphNode& n) { return !n.is_tensor; }),
            2);
  EXPECT_EQ(with_closed_parts(whole, {}).nodes.size(), whole.nodes.size());
}

TEST(GraphParts, ABackwardPassHasPartsOfItsOwn) {
  Document document = test::small_document({"eager"});
  document.setup.workload.phase = Phase::train;
  const Results results = test::results_of(document);
  const RunView& view = results.runs.front();
  ASSERT_TRUE(view.ok());
  EXPECT_THAT(
      part_names(block_graph(view)),
      ::testing::IsSupersetOf({"attention", "MLP", "attention, backward", "MLP, backward"}));
}

TEST(GraphParts, ABoxDiffersWhereAnythingInItDoes) {
  const BlockGraph graph = block_graph(view_of("eager"));
  GraphDifference difference;
  difference.edges = {edge_text({"down", "residual2"})};
  const GraphDifference seen = with_closed_parts(difference, graph, {"MLP"});
  EXPECT_THAT(seen.operators, ElementsAre("part:MLP"));
  EXPECT_THAT(with_closed_parts(difference, graph, {"attention"}).operators, IsEmpty());
}

// Each block of each model has parts with names, and no operator is left out.
TEST(GraphParts, EveryModelHasParts) {
  for (const std::string& name : model_names()) {
    gui::Setup setup = test::small_setup();
    setup.model = name;
    const PredictionCase c = resolve(setup);
    const Graph block = build_block(c.model, c.workload);
    const auto parts = parts_of(block);
    EXPECT_EQ(parts.size(), block.ops().size()) << name;
    std::set<std::string> names;
    for (const auto& [op, part] : parts) names.insert(part);
    EXPECT_THAT(names, Contains(::testing::AnyOf("attention", "scan"))) << name;
  }
}

}  // namespace
}  // namespace fuseline::gui
