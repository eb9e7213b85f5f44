// What is said of an edge before the click is what the click then does.
#include "gui/model/edge_preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/model/workbench.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const OnChipEdge kLegal{"down", "residual2"};
const OnChipEdge kIllegal{"gate_up", "swiglu"};  // its columns are not interleaved

// 1,024 tokens of LLaMA-2-7B: activations that L2 does not hold all.
Document document_of(const std::string& policy) {
  Document d = test::small_document({policy});
  d.setup.model = "llama2-7b";
  d.setup.workload.seq = 1024;
  return d;
}

class EdgePreviews : public ::testing::Test {
 protected:
  explicit EdgePreviews(const std::string& policy = "per-operator")
      : bench_(document_of(policy), {}) {
    bench_.wait();
  }
  EdgePreview preview(const OnChipEdge& edge) {
    return preview_edge(bench_.document(), *bench_.results().find(bench_.shown_run()), edge,
                        bench_.cache());
  }
  const RunResult& shown() { return *bench_.results().find(bench_.shown_run())->result; }

  Workbench bench_;
};

TEST_F(EdgePreviews, ALegalClickSavesWhatWasSaid) {
  const RunEdit edit = edit_run(bench_.document(), bench_.shown_run(),
                                [](const Graph& block, const CustomFusion& custom) {
                                  return toggle_edge(block, custom, kLegal, Suggest::no);
                                });
  ASSERT_TRUE(edit.like.has_value());
  const PlanEstimate before = *bench_.result_like(*edit.like)->predicted;
  const EdgePreview said = preview(kLegal);
  ASSERT_TRUE(said.legal) << said.text;
  EXPECT_FALSE(said.splits);
  ASSERT_TRUE(bench_.toggle_edge(bench_.shown_run(), kLegal).outcome.legal);
  bench_.wait();
  const PlanEstimate& after = *shown().predicted;
  EXPECT_GT(said.saving.hbm, Bytes(0));
  EXPECT_EQ(said.saving.hbm, before.hbm_read + before.hbm_write - after.hbm_read - after.hbm_write);
  EXPECT_EQ(said.saving.time, before.time - after.time);
  EXPECT_THAT(said.text, StartsWith("Fuse down → residual2: HBM traffic −"));
  EXPECT_THAT(said.text, HasSubstr("time −"));
}

// Under eager norms and activations are a framework's own kernels, which custom does not launch:
// that is no merit of the edge.
TEST(EdgePreviewsOfAPolicy, SayWhatComesOfOtherKernelsBesideWhatTheEdgeSaves) {
  Workbench bench(document_of("eager"), {});
  bench.wait();
  const RunView& run = *bench.results().find(bench.shown_run());
  const EdgePreview said = preview_edge(bench.document(), run, kLegal, bench.cache());
  ASSERT_TRUE(said.legal);
  EXPECT_THAT(said.text, HasSubstr("; custom's kernels in place of those of eager: HBM traffic −"));
  EXPECT_THAT(said.text.substr(said.text.find("in place of")), HasSubstr(", time −"));
  const Seconds before = run.result->predicted->time;
  bench.toggle_edge(bench.shown_run(), kLegal);
  bench.wait();
  const PlanEstimate& after = *bench.results().find(bench.shown_run())->result->predicted;
  EXPECT_LT(said.saving.time, before - after.time);
}

// Bytes and times of the edit and of leaving the policy's kernels are always said, however small:
// together they are the whole difference.
TEST(EdgePreviewsOfAPolicy, ItsTwoPartsAddUpToTheWholeDifference) {
  for (const char* policy : {"eager", "per-operator", "torch-compile", "coda", "unfused"}) {
    Workbench bench(document_of(policy), {});
    bench.wait();
    const RunView run = *bench.results().find(bench.shown_run());
    const bool splits = share_kernel(*run.result->plan, kLegal);
    const EdgePreview said = preview_edge(bench.document(), run, kLegal, bench.cache());
    ASSERT_TRUE(said.legal) << policy << ": " << said.text;
    EXPECT_EQ(said.splits, splits) << policy;
    ASSERT_TRUE(bench.toggle_edge(bench.shown_run(), kLegal).outcome.legal);
    bench.wait();
    const Totals before = totals_of(*run.result->predicted);
    const Totals& after = bench.results().find(bench.shown_run())->result->totals;
    EXPECT_EQ(said.saving.hbm + said.saving.kernels_hbm, before.hbm() - after.hbm()) << policy;
    EXPECT_NEAR((said.saving.time + said.saving.kernels_time).value(),
                (before.time - after.time).value(), 1e-15)
        << policy;
    const std::size_t kernels =
        said.text.find(std::string("; custom's kernels in place of those of ") + policy + ": ");
    ASSERT_NE(kernels, std::string::npos) << said.text;
    for (const std::string& part : {said.text.substr(0, kernels), said.text.substr(kernels)}) {
      EXPECT_THAT(part, HasSubstr("HBM traffic ")) << said.text;
      EXPECT_THAT(part, HasSubstr(", time ")) << said.text;
    }
  }
}

// Percentages of both parts are of the policy's run.
TEST(Savings, PercentagesOfTheTwoPartsAddUp) {
  PlanEstimate before, like, after;
  before.hbm_read = Bytes(1000'000'000);
  like.hbm_read = Bytes(900'000'000);
  after.hbm_read = Bytes(800'000'000);
  before.time = microseconds(1000);
  like.time = microseconds(1004);
  after.time = microseconds(950);
  EXPECT_EQ(saving_of_edit("eager", before, like, after).text,
            "HBM traffic −100.0 MB (−10.0 %), time −54.0 µs (−5.4 %); custom's kernels in place of "
            "those of eager: HBM traffic −100.0 MB (−10.0 %), time +4.00 µs (+0.4 %)");
}

TEST_F(EdgePreviews, OfAnEdgeOnChipItSaysWhatSplittingCosts) {
  ASSERT_TRUE(bench_.toggle_edge(bench_.shown_run(), kLegal).outcome.legal);
  bench_.wait();
  const EdgePreview said = preview(kLegal);
  ASSERT_TRUE(said.legal) << said.text;
  EXPECT_TRUE(said.splits);
  EXPECT_LT(said.saving.hbm, Bytes(0));
  EXPECT_THAT(said.text, StartsWith("Split down → residual2: HBM traffic +"));
}

TEST_F(EdgePreviews, AnIllegalClickHasItsReasonAndNothingChanges) {
  const Document before = bench_.document();
  const EdgePreview said = preview(kIllegal);
  EXPECT_FALSE(said.legal);
  const Workbench::Edit edit = bench_.toggle_edge(bench_.shown_run(), kIllegal);
  ASSERT_FALSE(edit.outcome.legal);
  EXPECT_EQ(said.text, "Fuse gate_up → swiglu: not possible, " + edit.outcome.reason);
  EXPECT_EQ(bench_.document(), before);
  // Inside attention nothing can be split.
  EXPECT_THAT(preview({"scores", "softmax"}).text, HasSubstr("online softmax"));
}

TEST_F(EdgePreviews, TheClickFindsItsResultInTheCache) {
  ASSERT_TRUE(preview(kLegal).legal);
  bench_.toggle_edge(bench_.shown_run(), kLegal);
  bench_.wait();
  EXPECT_EQ(bench_.results().computed, 0U);
  // Without a preview it is computed.
  bench_.undo();
  bench_.wait();
  bench_.toggle_edge(bench_.shown_run(), {"oproj", "residual1"});
  bench_.wait();
  EXPECT_EQ(bench_.results().computed, 1U);
}

TEST_F(EdgePreviews, AStoppedOneTellsNobody) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(preview_edge(bench_.document(), *bench_.results().find(bench_.shown_run()), kLegal,
                            bench_.cache(), stop.get_token()),
               Cancelled);
}

}  // namespace
}  // namespace fuseline::gui
