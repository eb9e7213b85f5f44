// Each mission is not done at its start, and can be done with what the window offers.
#include "gui/model/missions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/model/workbench.h"
#include "model/blocks/block.h"
#include "model/formats/stored_weight.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Mission& mission(const std::string& id) {
  const auto found = std::ranges::find(missions(), id, &Mission::id);
  EXPECT_NE(found, missions().end()) << id;
  return *found;
}

// A session as the window has it, that a mission has begun in.
class Attempt {
 public:
  explicit Attempt(const std::string& id) : mission_(mission(id)), bench_(mission_.start(), {}) {
    bench_.wait();
    EXPECT_FALSE(state().done) << id << ": " << state().now;
  }
  [[nodiscard]] MissionState state() {
    bench_.wait();
    return judge(mission_, bench_.document(), bench_.results());
  }
  Workbench& bench() { return bench_; }
  void set_setup(const std::function<void(Setup&)>& change) {
    Setup setup = bench_.document().setup;
    change(setup);
    bench_.set_setup(setup, "setup");
  }
  void expect_done() {
    const MissionState now = state();
    EXPECT_TRUE(now.done) << mission_.id << ": " << now.now;
  }

 private:
  const Mission& mission_;
  Workbench bench_;
};

TEST(Missions, AreToldApartAndBelongToLabs) {
  std::set<std::string> ids;
  for (const Mission& m : missions()) {
    EXPECT_TRUE(ids.insert(m.id).second) << m.id;
    EXPECT_FALSE(m.task.empty() || m.learnt.empty() || m.hints.empty()) << m.id;
    EXPECT_TRUE(m.lab >= 0 && m.lab <= 13) << m.id;
    EXPECT_FALSE(judge(m, m.start(), {}).done) << m.id << ": nothing is computed yet";
  }
}

TEST(Missions, AFirstFusion) {
  Attempt attempt("first-fusion");
  for (const OnChipEdge& edge : {OnChipEdge{"down", "residual2"}, OnChipEdge{"oproj", "residual1"}})
    attempt.bench().toggle_edge(attempt.bench().shown_run(), edge);
  attempt.expect_done();
}

TEST(Missions, AnEpilogueThatIsRefusedAtFirst) {
  Attempt attempt("epilogue");
  Workbench& bench = attempt.bench();
  EXPECT_FALSE(bench.move_operator(bench.shown_run(), "swiglu", "gate_up").outcome.legal);
  bench.toggle_rewrite(bench.shown_run(), "interleave_gate_up");
  EXPECT_FALSE(attempt.state().done);
  EXPECT_TRUE(bench.move_operator(bench.shown_run(), "swiglu", "gate_up").outcome.legal);
  attempt.expect_done();
}

TEST(Missions, WhatL2Hides) {
  Attempt attempt("small-l2");
  attempt.set_setup([](gui::Setup& s) { s.what_if.l2_capacity = kLeastFactor; });
  attempt.expect_done();
  attempt.set_setup([](gui::Setup& s) { s.what_if.hbm_bandwidth = 0.5; });
  EXPECT_FALSE(attempt.state().done);
  EXPECT_THAT(attempt.state().now, HasSubstr("alone"));
}

TEST(Missions, OverTheRidge) {
  Attempt attempt("ridge");
  attempt.set_setup([](gui::Setup& s) { s.workload.batch = 32; });
  EXPECT_FALSE(attempt.state().done);
  attempt.set_setup([](gui::Setup& s) { s.workload.batch = 512; });
  EXPECT_FALSE(attempt.state().done) << "more than is asked for";
  attempt.set_setup([](gui::Setup& s) { s.workload.batch = 256; });
  attempt.expect_done();
}

TEST(Missions, WeightsOfFewBits) {
  Attempt attempt("few-bits");
  attempt.set_setup([](gui::Setup& s) {
    s.workload.formats.weights = parse_stored_weight("fp8", "weights", "bf16");
  });
  EXPECT_FALSE(attempt.state().done);
  attempt.set_setup([](gui::Setup& s) {
    s.workload.formats.weights = parse_stored_weight("int4", "weights", "bf16");
  });
  attempt.expect_done();
  // Fewer bytes because of fewer tokens do not count.
  attempt.set_setup([](gui::Setup& s) { s.workload.context = 64; });
  EXPECT_FALSE(attempt.state().done);
}

TEST(Missions, FasterThanTheCompiler) {
  Attempt attempt("compiler");
  Document like = attempt.bench().document();
  like.runs = runs_for(like.setup, {"coda"}, {}, "");
  const PredictionCase c = resolve(like.setup);
  const Graph block = build_block(c.model, c.workload);
  gui::Run run{.name = "mine", .policy = kCustomPolicy};
  run.custom = custom_like(make_plan("coda", block), block);
  attempt.bench().add_run(run);
  attempt.expect_done();
}

}  // namespace
}  // namespace fuseline::gui
