// The record of a walk: that it is the walk from which the prediction is made, and changes nothing.
#include "sim/motion/walk_record.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/gpu.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

Plan plan_of(const std::string& policy, const Workload& work = forward(1, 512)) {
  return make_plan(policy, load_model("tinyllama"), work);
}

constexpr const char* kRecordedPolicies[] = {"unfused",       "eager", "composed",
                                             "torch-compile", "coda",  "whole-block"};

TEST(WalkRecord, ItsEstimateIsThePrediction) {
  const Gpu gpu = load_gpu("h200");
  for (const char* policy : kRecordedPolicies) {
    const Plan plan = plan_of(policy);
    const PlanEstimate predicted = simulate(plan, gpu, Fidelity::hierarchy);
    const WalkRecord record = record_walk(plan, gpu);
    EXPECT_EQ(record.estimate.time.value(), predicted.time.value()) << policy;
    EXPECT_EQ(record.estimate.hbm_read, predicted.hbm_read) << policy;
    EXPECT_EQ(record.estimate.hbm_write, predicted.hbm_write) << policy;
  }
}

TEST(WalkRecord, StepsMoveTheBytesOfTheirLaunch) {
  const Gpu gpu = load_gpu("h200");
  for (const Workload& work : {forward(1, 512), decode(4, 1, 300)}) {
    for (const char* policy : kRecordedPolicies) {
      const WalkRecord r = record_walk(plan_of(policy, work), gpu);
      ASSERT_EQ(r.launches.size(), r.estimate.kernels.size()) << policy;
      for (std::size_t i = 0; i < r.launches.size(); ++i) {
        const KernelEstimate& e = r.estimate.kernels[i];
        HbmTraffic moved;
        for (std::size_t p = r.launches[i].first_phase; p < r.launches[i].last_phase; ++p) {
          for (std::size_t s = r.phases[p].first_step; s < r.phases[p].last_step; ++s) {
            moved.read += r.steps[s].hbm.read;
            moved.write += r.steps[s].hbm.write;
          }
        }
        EXPECT_EQ(moved.read, e.hbm_read) << policy << " " << e.name;
        EXPECT_EQ(moved.write + r.launches[i].written_later, e.hbm_write)
            << policy << " " << e.name;
        EXPECT_GE(r.launches[i].written_later, Bytes()) << policy << " " << e.name;
      }
    }
  }
}

TEST(WalkRecord, StepsFollowEachOtherAndFillTheirLaunch) {
  const WalkRecord r = record_walk(plan_of("coda"), load_gpu("h200"));
  Seconds now;
  for (const RecordedLaunch& launch : r.launches) {
    EXPECT_NEAR(launch.start.value(), now.value(), 1e-15);
    Seconds at = launch.start + launch.lead;
    for (std::size_t p = launch.first_phase; p < launch.last_phase; ++p) {
      for (std::size_t s = r.phases[p].first_step; s < r.phases[p].last_step; ++s) {
        EXPECT_NEAR(r.steps[s].start.value(), at.value(), 1e-15);
        EXPECT_GT(r.steps[s].time, Seconds());
        EXPECT_LT(r.steps[s].epilogue, r.steps[s].time);
        at += r.steps[s].time;
      }
    }
    now += launch.time;
    EXPECT_NEAR(at.value(), now.value(), 1e-15);
  }
  EXPECT_NEAR(r.time() / r.estimate.time, 1, 1e-12);
}

// A chunk that a step brings in was not there, and one that it evicts was.
TEST(WalkRecord, ChangesLeadFromEachContentsToTheNext) {
  Gpu gpu = load_gpu("h200");
  gpu.l2_capacity = Bytes(8 << 20);  // so that chunks must leave
  const WalkRecord r = record_walk(plan_of("eager"), gpu);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, ChunkState> held;
  std::size_t left = 0;
  const auto apply = [&](const ChunkChange& c) {
    ChunkState& state = held[{c.matrix, c.row_block, c.col_block}];
    EXPECT_EQ(state, c.before);
    EXPECT_NE(c.before, c.after);
    state = c.after;
    ASSERT_LT(c.matrix, r.matrices.size());
    EXPECT_LT(c.row_block, r.matrices[c.matrix].row_blocks);
    EXPECT_LT(c.col_block, r.matrices[c.matrix].col_blocks);
    left += c.after == ChunkState::absent ? 1U : 0U;
  };
  for (const ChunkChange& c : r.at_first) apply(c);
  std::size_t next = 0;
  Bytes evicted;
  for (const RecordedStep& step : r.steps) {
    EXPECT_EQ(step.first_change, next);
    for (next = step.first_change; next < step.last_change; ++next) apply(r.changes[next]);
    EXPECT_LE(step.resident, r.capacity);
    evicted += step.evicted;
  }
  EXPECT_EQ(next, r.changes.size());
  EXPECT_GT(left, 0U);
  EXPECT_GT(evicted, Bytes());
}

// What comes in from HBM or is written by the kernel stays, or leaves to make room.
TEST(WalkRecord, NothingVanishesFromL2) {
  const WalkRecord r = record_walk(plan_of("eager", forward(1, 2048)), load_gpu("h200"));
  Bytes before = r.resident_at_first;
  for (const RecordedStep& step : r.steps) {
    EXPECT_GE(step.resident + step.evicted, before) << step.begin;
    before = step.resident;
  }
}

TEST(WalkRecord, WavesCoverEveryTileOnce) {
  const WalkRecord r = record_walk(plan_of("coda"), load_gpu("h200"));
  std::size_t gemms = 0;
  for (const RecordedPhase& phase : r.phases) {
    if (phase.units.empty()) continue;
    ++gemms;
    std::int64_t next = 0, area = 0;
    for (std::size_t s = phase.first_step; s < phase.last_step; ++s) {
      EXPECT_EQ(r.steps[s].begin, next);
      next = r.steps[s].end;
      EXPECT_LE((r.steps[s].end - r.steps[s].begin) * phase.tile.cluster(), phase.blocks_at_once);
    }
    EXPECT_EQ(next, std::ssize(phase.units)) << phase.name;
    for (const GemmUnit& u : phase.units)
      area += (u.m_end - u.m_begin) * (u.n_end - u.n_begin) * (u.k_end - u.k_begin);
    EXPECT_EQ(area % (phase.m * phase.n), 0) << phase.name;
    EXPECT_GT(phase.shared_bytes, Bytes());
  }
  EXPECT_EQ(gemms, 4U);
}

TEST(WalkRecord, NamesTheTensorThatAMatrixHoldsAtThatTime) {
  const WalkRecord r = record_walk(plan_of("eager"), load_gpu("h200"));
  for (std::size_t p = 0; p < r.phases.size(); ++p) {
    std::set<std::string> names;
    for (const std::uint32_t m : r.phases[p].loaded) names.insert(r.matrices[m].name_at(p));
    if (r.phases[p].name == "qkv") {
      EXPECT_TRUE(names.contains("w_qkv")) << p;
    }
    EXPECT_FALSE(names.contains("partial results")) << r.phases[p].name;
  }
}

TEST(WalkRecord, TakesManyHeadsTogether) {
  const WalkRecord r = record_walk(plan_of("eager", decode(512, 1, 128)), load_gpu("h200"));
  std::size_t heads = 0;
  std::int64_t covered = 0;
  for (const RecordedStep& s : r.steps) {
    if (s.kind != WalkStep::Kind::heads) continue;
    ++heads;
    covered += s.end - s.begin;
  }
  EXPECT_GT(heads, 100U);
  EXPECT_LE(heads, 256U);
  EXPECT_EQ(covered, 512 * 4);
}

TEST(WalkRecord, EndsWhereItIsStopped) {
  struct Enough : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  int steps = 0;
  EXPECT_THROW(record_walk(plan_of("coda"), load_gpu("h200"), {},
                           [&] {
                             if (++steps == 3) throw Enough("3");
                           }),
               Enough);
  EXPECT_EQ(steps, 3);
}

}  // namespace
}  // namespace fuseline
