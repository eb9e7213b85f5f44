#include "gui/model/block_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "gui/model/dot_layout.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

BlockGraph graph_of(const CustomFusion& custom) {
  Document d = test::small_document({"eager"});
  d.runs.add({.policy = kCustomPolicy, .custom = custom});
  return block_graph(test::results_of(d).runs[1]);
}

const GraphEdge& edge(const BlockGraph& g, const OnChipEdge& choice) {
  const auto found =
      std::ranges::find_if(g.edges, [&](const GraphEdge& e) { return e.choice == choice; });
  EXPECT_NE(found, g.edges.end()) << edge_text(choice);
  return *found;
}

TEST(BlockGraph, AnEdgeKeptOnChipCrossesNothing) {
  const BlockGraph apart = graph_of({});
  const BlockGraph fused = graph_of({{}, {{"down", "residual2"}}});
  const GraphEdge& before = edge(apart, {"down", "residual2"});
  const GraphEdge& after = edge(fused, {"down", "residual2"});
  EXPECT_FALSE(before.on_chip);
  EXPECT_EQ(before.tensor, "dn");
  EXPECT_EQ(before.hbm_stored, Bytes(256 * 2048 * 2));
  EXPECT_GT(before.thickness, 0);
  EXPECT_TRUE(after.on_chip);
  EXPECT_EQ(after.hbm_stored, Bytes(0));
  EXPECT_EQ(after.hbm_read, Bytes(0));
  EXPECT_EQ(after.thickness, 0);
  EXPECT_EQ(after.label, "on chip");
}

// Scores of 8,192 tokens, 4.3 GB that never leave the chip, would make every line thin.
TEST(BlockGraph, LinesAreScaledByTheLargestTensorInMemory) {
  Document d = test::small_document({"per-operator", "unfused"});
  d.setup.workload.seq = 8192;
  d.setup.fidelity = Fidelity::roofline;
  const Results results = test::results_of(d);
  for (const RunView& view : results.runs) {
    const Plan& plan = *view.result->plan;
    const Tensor* largest = nullptr;
    for (std::size_t i = 0; i < plan.homes.size(); ++i) {
      const Tensor& t = plan.graph.tensors()[i];
      if (plan.homes[i] == Home::on_chip) continue;
      if (largest == nullptr || t.bytes() > largest->bytes()) largest = &t;
    }
    const BlockGraph g = block_graph(view);
    double thickest = 0;
    for (const GraphEdge& e : g.edges) {
      if (e.tensor == largest->name) thickest = std::max(thickest, e.thickness);
    }
    EXPECT_DOUBLE_EQ(thickest, 1.0) << view.run.name << ", " << largest->name;
  }
  EXPECT_LT(edge(block_graph(results.runs[1]), {"gate_up", "swiglu"}).thickness,
            edge(block_graph(results.runs[0]), {"gate_up", "swiglu"}).thickness);
}

TEST(BlockGraph, GroupsAreTheKernelsOfSeveralOperators) {
  const BlockGraph g = graph_of({{}, {{"down", "residual2"}}});
  std::set<std::vector<std::string>> groups;
  for (const GraphGroup& group : g.groups) groups.insert(group.nodes);
  EXPECT_EQ(groups, (std::set<std::vector<std::string>>{{"op:scores", "op:softmax", "op:context"},
                                                        {"op:down", "op:residual2"}}));
}

TEST(BlockGraph, SaysHowOftenTheBlockIsRepeated) { EXPECT_EQ(graph_of({}).repeat, "× 22"); }

TEST(BlockGraph, OnlyEdgesOutsideAttentionCanBeToggled) {
  const BlockGraph g = graph_of({});
  EXPECT_FALSE(edge(g, {"scores", "softmax"}).can_toggle);
  EXPECT_TRUE(edge(g, {"down", "residual2"}).can_toggle);
}

TEST(BlockGraph, TheTextForDotDependsOnTheGraphAndNotOnTheGroups) {
  const std::string apart = dot_text(graph_of({}));
  EXPECT_EQ(apart, dot_text(graph_of({{}, {{"down", "residual2"}, {"oproj", "residual1"}}})));
  EXPECT_NE(apart, dot_text(graph_of({{"merge_rope"}, {}})));
}

TEST(BlockGraph, ARunWithoutAPlanSaysWhy) {
  Document d = test::small_document({"eager"});
  d.runs.add({.policy = "eager", .measurements = default_document().measurements});
  const BlockGraph g = block_graph(test::results_of(d).runs[1]);
  EXPECT_THAT(g.nodes, IsEmpty());
  EXPECT_THAT(g.problem, HasSubstr("not measured"));
}

// "n0" at 1,2 inches in a picture 5 inches high, and one edge.
BlockGraph two_nodes() {
  BlockGraph g;
  g.nodes.push_back(
      {.id = "a", .label = "a", .detail = {}, .tooltip = {}, .colour = {}, .thing = {}});
  g.nodes.push_back(
      {.id = "b", .label = "b", .detail = {}, .tooltip = {}, .colour = {}, .thing = {}});
  GraphEdge e;
  e.from = "a";
  e.to = "b";
  g.edges.push_back(e);
  return g;
}

constexpr const char* kPlain =
    "graph 1 4 5\n"
    "node n0 1 4 0.5 0.25 a solid box black lightgrey\n"
    "node n1 1 1 0.5 0.25 b solid box black lightgrey\n"
    "edge n0 n1 4 1 3.5 1 3 1 2 1 1.5 solid black\n"
    "stop\n";

TEST(DotLayout, ReadsPlainOutputIntoPointsWithTheOriginAtTheTop) {
  const GraphLayout l = parse_plain(kPlain, two_nodes());
  EXPECT_EQ(l.width, 4 * 72);
  EXPECT_EQ(l.nodes.at("a"), (Box{{72, 72}, 36, 18}));
  EXPECT_EQ(l.nodes.at("b"), (Box{{72, 4 * 72}, 36, 18}));
  const std::vector<Point>& line = l.edges.at({"a", "b"});
  ASSERT_EQ(line.size(), 4U);
  EXPECT_EQ(line.front(), (Point{72, 1.5 * 72}));
  EXPECT_EQ(line.back(), (Point{72, 3.5 * 72}));
}

TEST(DotLayout, RefusesWhatIsNotPlainOutputOfThisGraph) {
  const std::string plain = kPlain;
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = plain;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& wrong :
       {std::string(), std::string("nonsense"), plain.substr(0, plain.size() - 5),
        replaced("node n1", "node n7"), replaced("node n1", "node x1"),
        replaced("4 1 3.5", "5 1 3.5"), replaced("4 1 3.5", "99999 1 3.5"),
        replaced("edge n0 n1", "edge n1 n0"), replaced("1 1 0.5", "1 one 0.5")}) {
    EXPECT_THROW(static_cast<void>(parse_plain(wrong, two_nodes())), InputError) << wrong;
  }
}

TEST(DotLayout, WithoutDotAPlainLayoutSaysWhatToInstall) {
  const BlockGraph g = graph_of({});
  const GraphLayout l = layout(g, "no-such-program-as-this");
  EXPECT_THAT(l.note, HasSubstr("apt install graphviz"));
  EXPECT_EQ(l.nodes.size(), g.nodes.size());
  for (const GraphEdge& e : g.edges) {
    EXPECT_LT(l.nodes.at(e.from).centre.y, l.nodes.at(e.to).centre.y) << e.from << " " << e.to;
  }
  for (auto a = l.nodes.begin(); a != l.nodes.end(); ++a) {  // no overlap
    for (auto b = std::next(a); b != l.nodes.end(); ++b) {
      const bool apart = std::abs(a->second.centre.y - b->second.centre.y) >= a->second.height ||
                         std::abs(a->second.centre.x - b->second.centre.x) * 2 >=
                             a->second.width + b->second.width;
      EXPECT_TRUE(apart) << a->first << " " << b->first;
    }
  }
}

TEST(DotLayout, TakesWhatDotWrites) {
  const BlockGraph g = graph_of({{}, {{"down", "residual2"}}});
  GraphLayout l;
  try {
    l = parse_plain(run_dot(dot_text(g)), g);
  } catch (const MissingError& missing) {
    GTEST_SKIP() << missing.what();
  }
  EXPECT_THAT(l.note, IsEmpty());
  EXPECT_EQ(l.nodes.size(), g.nodes.size());
  EXPECT_LT(l.nodes.at("op:norm1").centre.y, l.nodes.at("op:residual2").centre.y);
  const auto& group = *std::ranges::find(g.groups, "down", &GraphGroup::name);
  const Hull hull = hull_of(group, g, l);
  EXPECT_EQ(hull.boxes.size(), 2U);
  EXPECT_EQ(hull.spines.size(), 1U);
}

TEST(DotLayout, AProgramThatFailsIsNotTakenForALayout) {
  EXPECT_THROW(static_cast<void>(run_dot("digraph {}", "false")), InputError);
}

}  // namespace
}  // namespace fuseline::gui
