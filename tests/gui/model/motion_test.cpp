// Tiles in motion: a moment of the walk, forwards and backwards.
#include "gui/model/motion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

MotionTrack track_of(const std::string& policy, std::int64_t seq = 256) {
  Document d = test::small_document({policy});
  d.setup.workload.seq = seq;
  return motion_track(test::results_of(d).runs.front());
}

TEST(Motion, AtTheEndAllBytesOfThePredictionHaveMoved) {
  for (const char* policy : {"eager", "coda", "whole-block"}) {
    const MotionTrack track = track_of(policy);
    ASSERT_TRUE(track.record) << track.problem;
    const MotionSpan span = span_of(*track.record);
    EXPECT_NEAR(span.length() / track.record->estimate.time, 1, 1e-12);
    const MotionFrame last = frame_at(track, span, span.length());
    Bytes later;
    for (const RecordedLaunch& l : track.record->launches) later += l.written_later;
    EXPECT_EQ(last.hbm.read, track.record->estimate.hbm_read) << policy;
    EXPECT_EQ(last.hbm.write + later, track.record->estimate.hbm_write) << policy;
  }
}

TEST(Motion, ASpanOfAKernelHasItsBytesAlone) {
  const MotionTrack track = track_of("coda");
  for (std::size_t i = 0; i < track.record->launches.size(); ++i) {
    const MotionSpan span = span_of(*track.record, {i});
    const KernelEstimate& e = track.record->estimate.kernels[i];
    const MotionFrame last = frame_at(track, span, span.length());
    EXPECT_EQ(last.hbm.read, e.hbm_read) << e.name;
    EXPECT_EQ(last.hbm.write + track.record->launches[i].written_later, e.hbm_write) << e.name;
    EXPECT_NEAR(span.length().value(), e.time.value(), 1e-15);
    EXPECT_EQ(frame_at(track, span, Seconds()).hbm.read, Bytes()) << e.name;
  }
}

TEST(Motion, BytesAndTilesNeverGoBack) {
  const MotionTrack track = track_of("coda");
  const MotionSpan span = span_of(*track.record);
  Bytes before;
  std::size_t done = 0;
  std::optional<std::size_t> phase;
  for (int i = 0; i <= 400; ++i) {
    const MotionFrame f = frame_at(track, span, (i / 400.0) * span.length());
    EXPECT_GE(f.hbm.read + f.hbm.write, before);
    before = f.hbm.read + f.hbm.write;
    const auto now = static_cast<std::size_t>(std::ranges::count(f.tiles, TileState::done));
    if (f.phase == phase) {
      EXPECT_GE(now, done);
    }
    phase = f.phase;
    done = now;
    EXPECT_LE(std::ssize(f.sms), track.sms);
    EXPECT_EQ(std::ssize(f.tiles), f.tile_rows * f.tile_cols);
    EXPECT_LE(f.shared_share, 1.0);
    EXPECT_LE(f.registers_share, 1.0);
  }
}

TEST(Motion, TheCursorSaysTheSameOnEveryWay) {
  const auto record = track_of("eager", 1024).record;
  L2Cursor wanderer(record);
  std::mt19937 random(7);
  std::uniform_int_distribution<std::size_t> steps(0, record->steps.size());
  for (int i = 0; i < 25; ++i) {
    const std::size_t step = steps(random);
    const double part = static_cast<double>(random() % 5) / 4;
    wanderer.go_to(step, part);
    L2Cursor direct(record);
    direct.go_to(step, part);
    for (std::size_t m = 0; m < record->matrices.size(); ++m) {
      ASSERT_EQ(wanderer.held(m), direct.held(m));
      for (std::int64_t row = 0; row < record->matrices[m].row_blocks; ++row)
        for (std::int64_t col = 0; col < record->matrices[m].col_blocks; ++col)
          ASSERT_EQ(wanderer.cell(m, row, col), direct.cell(m, row, col)) << step << " " << m;
    }
  }
}

TEST(Motion, WhatComesInAndLeavesIsMarkedInItsStepAlone) {
  const auto record = track_of("eager", 1024).record;
  L2Cursor cursor(record);
  std::size_t fresh = 0;
  for (std::size_t step = 0; step < record->steps.size(); ++step) {
    cursor.go_to(step, 1);
    std::size_t marked = 0;
    for (std::size_t m = 0; m < record->matrices.size(); ++m)
      for (std::int64_t row = 0; row < record->matrices[m].row_blocks; ++row)
        for (std::int64_t col = 0; col < record->matrices[m].col_blocks; ++col) {
          const L2Cursor::Cell cell = cursor.cell(m, row, col);
          marked += cell == L2Cursor::Cell::came_in || cell == L2Cursor::Cell::left ? 1U : 0U;
        }
    const RecordedStep& s = record->steps[step];
    EXPECT_LE(marked, s.last_change - s.first_change);
    fresh += marked;
  }
  EXPECT_GT(fresh, 0U);
}

TEST(Motion, SaysWhichTileAnSmHas) {
  const MotionTrack track = track_of("coda", 2048);
  const MotionSpan span = span_of(*track.record);
  const auto gemm = std::ranges::find_if(
      track.record->phases, [](const RecordedPhase& p) { return p.units.size() > 200; });
  ASSERT_NE(gemm, track.record->phases.end());
  const RecordedStep& step = track.record->steps[gemm->first_step];
  const MotionFrame f = frame_at(track, span, step.start + 0.5 * step.time);
  ASSERT_FALSE(f.sms.empty());
  EXPECT_EQ(std::ssize(f.sms), (step.end - step.begin) * gemm->tile.cluster());
  EXPECT_EQ(f.tiles[tile_of_unit(*gemm, f.sms.front().unit)], TileState::running);
  EXPECT_THAT(unit_text(*gemm, f.sms.front().unit), HasSubstr("rows 0 to "));
  EXPECT_THAT(f.doing, HasSubstr("wave 1 of "));
  EXPECT_GT(f.sms.front().progress, 0.3);
  EXPECT_GT(f.shared_share, 0.1);
}

TEST(Motion, StepsAreGoneThroughOneByOne) {
  const MotionTrack track = track_of("coda");
  const MotionSpan span = span_of(*track.record);
  Seconds now = span.begin;
  std::size_t count = 0;
  for (; now < span.end && count <= track.record->steps.size(); ++count) {
    const Seconds next = next_step(*track.record, span, now, 1);
    EXPECT_GT(next, now);
    now = next;
  }
  EXPECT_EQ(count, track.record->steps.size() + 1);
  EXPECT_LT(next_step(*track.record, span, now, -1), now);
  EXPECT_GE(next_step(*track.record, span, span.begin, -1), span.begin);
}

TEST(Motion, AMeasurementHasNoTiles) {
  Document d = test::small_document({"coda"});
  d.setup.fidelity = Fidelity::roofline;
  EXPECT_THAT(motion_track(test::results_of(d).runs.front()).problem, HasSubstr("hierarchy"));
  RunView none;
  none.run = {.policy = "eager", .measurements = "somewhere"};
  EXPECT_NE(motion_track(none).problem, "");
}

TEST(Motion, TheTableAddsUpToThePrediction) {
  const MotionTrack track = track_of("coda");
  const Table table = to_table(track);
  EXPECT_EQ(unlike_in(table), "");
  std::int64_t read = 0;
  for (const auto& row : table.rows) read += std::get<std::int64_t>(row.at(8));
  EXPECT_EQ(read, track.record->estimate.hbm_read.value());
}

}  // namespace
}  // namespace fuseline::gui
