// Tiles in motion: one moment of the simulator's own walk through a block. Which tiles run on the
// SMs, what L2 holds chunk by chunk, what came in and what left, and the bytes of HBM so far.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gui/model/results.h"
#include "gui/model/table.h"
#include "sim/motion/walk_record.h"

namespace fuseline::gui {

// The walk of one run, with what of the machine a picture needs.
struct MotionTrack {
  RunId run{};
  std::string label;
  std::shared_ptr<const WalkRecord> record;  // null: `problem` says why
  std::string problem{};
  std::int64_t sms = 0;
  Bytes shared_per_sm{}, registers_per_sm{};
  Subject about{};
};

// Walks the run's plan once more, 20 to 200 ms. `between` is called after every step; what it
// throws ends the walk. A measured run has no walk: counters know no tiles.
MotionTrack motion_track(const RunView& view, const std::function<void()>& between = {});

// The kernel of a run that moves at the time of the picture.
struct MovingKernel {
  RunId run;
  std::size_t launch = 0;
  friend bool operator==(const MovingKernel&, const MovingKernel&) = default;
};

struct MotionSpan {
  Seconds begin, end;
  [[nodiscard]] Seconds length() const { return end - begin; }
};
// Of these launches, from the first to the last; without any, of the whole block.
MotionSpan span_of(const WalkRecord& record, const std::set<std::size_t>& launches = {});

// The step that runs at that time, or runs next; none after the last one.
std::optional<std::size_t> step_at(const WalkRecord& record, Seconds time);
// The launch that runs at that time, or runs next; after the end the last one.
std::size_t launch_at(const WalkRecord& record, Seconds time);
std::size_t phase_of_step(const WalkRecord& record, std::size_t step);
// Where the neighbouring step begins; of the span's ends no further.
Seconds next_step(const WalkRecord& record, MotionSpan span, Seconds time, int by);

// What L2 holds at a time. Going on from one time to a near one is quick, in both directions.
class L2Cursor {
 public:
  explicit L2Cursor(std::shared_ptr<const WalkRecord> record);

  // So much of the step's changes are made, in the order of their places: which comes first inside
  // a step is not recorded.
  void go_to(std::size_t step, double part);

  enum class Cell : std::uint8_t { absent, clean, dirty, came_in, left };
  // Row by row, matrix.row_blocks × matrix.col_blocks. What came in or left does so in this step.
  [[nodiscard]] Cell cell(std::size_t matrix, std::int64_t row, std::int64_t col) const;
  [[nodiscard]] std::int64_t held(std::size_t matrix) const { return held_[matrix]; }  // chunks

 private:
  struct Chunk {
    ChunkState state = ChunkState::absent;
    bool fresh = false;
  };
  Chunk& at(const ChunkChange& change);
  void set(const ChunkChange& change, ChunkState state);

  std::shared_ptr<const WalkRecord> record_;
  std::vector<std::vector<Chunk>> chunks_;  // by matrix
  std::vector<std::int64_t> held_;
  std::size_t applied_ = 0;                      // changes
  std::size_t fresh_begin_ = 0, fresh_end_ = 0;  // of changes, those that are marked
};

// A text of the picture, and what is left of it where there is less and less room.
using MotionText = std::vector<std::string>;

enum class TileState : std::uint8_t { waiting, running, done };

// An SM with a thread block of a GEMM. Which of the machine's SMs it is nobody knows: they are
// numbered in the order in which the simulator hands tiles to them.
struct MotionSm {
  std::size_t unit = 0;  // of the phase
  double progress = 0;   // 0 to 1 along k
  bool storing = false;  // its mainloop is over: the epilogue runs
};

struct MotionFrame {
  Seconds now;  // since the block began
  std::string kernel;
  std::string doing;  // "wave 3 of 11: tiles 265 to 396 of 1,376"
  std::string doing_brief;
  std::string bound;  // "tensor sets its time"
  std::optional<std::size_t> launch{}, phase{}, step{};
  double part = 0;  // of the step that is over

  // The result in tiles, or in steps of rows or heads; row by row.
  std::int64_t tile_rows = 0, tile_cols = 0;
  std::vector<TileState> tiles;
  MotionText tiles_text;
  std::vector<MotionSm> sms;  // empty where the simulator tells no SMs apart
  MotionText sms_text;
  double shared_share = 0, registers_share = 0;  // of an SM's, where a thread block runs
  MotionText shared_text, registers_text;

  HbmTraffic hbm;  // since the span began
  BytesPerSecond rate;
  Bytes evicted;   // since the span began
  Bytes resident;  // in L2
};

// Of the moment `now`, counted from the span's begin on. Past the end it is the last moment.
MotionFrame frame_at(const MotionTrack& track, MotionSpan span, Seconds now);
// Where the unit's first tile lies in `tiles`.
std::size_t tile_of_unit(const RecordedPhase& phase, std::size_t unit);
// "rows 128 to 255, columns 0 to 255"
std::string unit_text(const RecordedPhase& phase, std::size_t unit);

// The matrices that a picture of the span needs, those that its kernels touch first, in the order
// of their first use; then what else L2 holds when it begins.
std::vector<std::size_t> matrices_of(const std::shared_ptr<const WalkRecord>& walk,
                                     MotionSpan span);

// A line each step.
Table to_table(const MotionTrack& track);

}  // namespace fuseline::gui
