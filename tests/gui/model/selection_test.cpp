#include "gui/model/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

class Links : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    results_ = new Results(test::results_of(test::small_document({"eager", "coda"})));
  }
  static void TearDownTestSuite() { delete results_; }
  static std::set<std::string> names(const Highlight& h, std::size_t run) {
    std::set<std::string> out;
    const RunView& view = results_->runs[run];
    const auto found = h.kernels.find(view.run.id);
    if (found == h.kernels.end()) return out;
    for (const std::size_t k : found->second) {
      out.insert(view.result->kernels[k].estimate.name);
    }
    return out;
  }
  static Results* results_;
};
Results* Links::results_ = nullptr;

TEST_F(Links, AnOperatorLightsUpItsKernelInEveryRun) {
  const Highlight h = highlight(*results_, op_thing("gate_up"));
  EXPECT_EQ(names(h, 0), (std::set<std::string>{"gate_up"}));
  EXPECT_EQ(names(h, 1), (std::set<std::string>{"gate_up"}));
  EXPECT_THAT(h.tensors, Contains("w_gate_up"));
  EXPECT_THAT(h.tensors, Contains("xn2"));
}

TEST_F(Links, AnOperatorThatARunDoesNotHaveStandsForItsSite) {
  // eager launches SiLU and the multiplication of SwiGLU apart; coda does both behind the GEMM.
  const Highlight h = highlight(*results_, op_thing("swiglu"));
  EXPECT_EQ(names(h, 1), (std::set<std::string>{"gate_up"}));
  EXPECT_EQ(names(h, 0).size(), 2U);
  EXPECT_THAT(names(h, 0), Not(Contains("gate_up")));
}

TEST_F(Links, AKernelLightsUpTheKernelsOfOtherRunsThatDoItsWork) {
  const RunView& coda = results_->runs[1];
  std::size_t gate_up = 0;
  while (coda.result->kernels[gate_up].estimate.name != "gate_up") ++gate_up;
  const Highlight h = highlight(*results_, kernel_thing(coda.run.id, gate_up));
  EXPECT_EQ(names(h, 1), (std::set<std::string>{"gate_up"}));
  EXPECT_THAT(names(h, 0), Contains("gate_up"));
  EXPECT_GT(names(h, 0).size(), 1U);
  EXPECT_THAT(h.edges, Not(IsEmpty()));
}

TEST_F(Links, ATensorLightsUpWhoTouchesIt) {
  const Highlight h = highlight(*results_, tensor_thing("xn2"));
  EXPECT_THAT(h.operators, Contains("norm2"));
  EXPECT_THAT(h.operators, Contains("gate_up"));
  EXPECT_THAT(h.edges, Contains("norm2 -> gate_up"));
  EXPECT_EQ(names(h, 0), (std::set<std::string>{"gate_up", "norm2"}));
}

TEST_F(Links, AnEdgeLightsUpItsTensorAndBothOperators) {
  const Highlight h = highlight(*results_, edge_thing({"norm2", "gate_up"}));
  EXPECT_THAT(h.tensors, ::testing::ElementsAre("xn2"));
  EXPECT_THAT(h.operators, Contains("norm2"));
}

TEST_F(Links, AMemoryLevelLightsUpTheKernelsItBinds) {
  const Highlight h = highlight(*results_, level_thing(MemoryLevel::hbm));
  for (const auto& [run, kernels] : h.kernels) {
    for (const std::size_t k : kernels) {
      EXPECT_EQ(results_->find(run)->result->kernels[k].estimate.bound, Bound::hbm);
    }
  }
  EXPECT_THAT(highlight(*results_, level_thing(MemoryLevel::registers)).kernels, Not(IsEmpty()));
}

TEST_F(Links, NothingLightsUpNothing) {
  const Highlight h = highlight(*results_, {});
  EXPECT_THAT(h.operators, IsEmpty());
  EXPECT_THAT(h.kernels, IsEmpty());
  EXPECT_THAT(h.runs, IsEmpty());
}

TEST_F(Links, TheHoveredThingIsShownBeforeTheSelectedOne) {
  Selection s{op_thing("a"), op_thing("b")};
  EXPECT_EQ(s.shown(), op_thing("b"));
  s.hovered = {};
  EXPECT_EQ(s.shown(), op_thing("a"));
}

TEST_F(Links, SearchFindsBeginningsFirst) {
  const std::vector<SearchHit> hits = search(*results_, "GATE");
  ASSERT_THAT(hits, Not(IsEmpty()));
  EXPECT_EQ(hits.front().text, "operator gate_up");
  bool weight = false;
  for (const SearchHit& hit : hits) {
    EXPECT_TRUE(exists(*results_, hit.thing)) << hit.text;
    weight = weight || hit.text == "tensor w_gate_up";
  }
  EXPECT_TRUE(weight);
  EXPECT_THAT(search(*results_, ""), IsEmpty());
  EXPECT_EQ(search(*results_, "o", 3).size(), 3U);
}

TEST_F(Links, WhatIsGoneDoesNotExist) {
  EXPECT_FALSE(exists(*results_, op_thing("nothing")));
  EXPECT_FALSE(exists(*results_, kernel_thing(results_->runs[0].run.id, 1000)));
  EXPECT_FALSE(exists(*results_, run_thing(RunId{77})));
  EXPECT_TRUE(exists(*results_, edge_thing({"norm2", "gate_up"})));
}

}  // namespace
}  // namespace fuseline::gui
