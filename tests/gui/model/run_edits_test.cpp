// An edit of a policy's run starts from the graph that is drawn of it.
#include "gui/model/run_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gui/model/block_graph.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

const OnChipEdge kEdge{"down", "residual2"};

using Names = std::set<std::string>;

Names nodes_of(const BlockGraph& graph) {
  Names names;
  for (const GraphNode& node : graph.nodes) names.insert(node.id);
  return names;
}

TEST(RunEdits, InTrainingTheCustomRunHasTheNodesThatWereDrawn) {
  for (const char* policy : {"unfused", "eager", "torch-compile", "coda"}) {
    Document d = test::small_document({});
    d.setup.workload.phase = Phase::train;
    d.setup.workload.seq = 64;
    d.setup.fidelity = Fidelity::roofline;
    const RunId run = d.runs.add({.policy = policy});
    const RunEdit edit = edit_run(d, run, [](const Graph& block, const CustomFusion& custom) {
      return toggle_edge(block, custom, kEdge, Suggest::no);
    });
    ASSERT_TRUE(edit.outcome.legal) << policy << ": " << edit.outcome.reason;
    const Results results = test::results_of(edit.document);
    ASSERT_TRUE(results.find(edit.run)->ok()) << results.find(edit.run)->result->problem->text;
    const BlockGraph drawn = block_graph(*results.find(run));
    const BlockGraph edited = block_graph(*results.find(edit.run));
    EXPECT_EQ(nodes_of(edited), nodes_of(drawn)) << policy;
    EXPECT_EQ(dot_text(edited), dot_text(drawn)) << policy;
  }
}

}  // namespace
}  // namespace fuseline::gui
