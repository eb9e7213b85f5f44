#include "gui/model/motion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

// The result in tiles: products of a batch, and parts of k, below each other.
struct TileGrid {
  std::int64_t rows_each = 1, cols = 1, stacked = 1;
};

TileGrid grid_of(const RecordedPhase& phase) {
  TileGrid grid;
  const std::int64_t height = phase.tile.m * phase.tile.cluster_m;
  const std::int64_t width = phase.tile.n * phase.tile.cluster_n;
  std::int64_t row_end = 0;
  for (const GemmUnit& u : phase.units) row_end = std::max(row_end, u.m_end);
  grid.rows_each = ceil_div(row_end, height);
  grid.cols = ceil_div(phase.n, width);
  // Groups of rows lie behind each other already; each begins a tile of its own.
  const bool groups =
      std::ranges::any_of(phase.units, [](const GemmUnit& u) { return u.group_row > 0; });
  if (groups) {
    grid.rows_each = 0;
    for (const GemmUnit& u : phase.units)
      grid.rows_each = std::max(grid.rows_each, u.row_tile(u.m_begin, phase.tile.m) + 1);
    return grid;
  }
  for (const GemmUnit& u : phase.units) grid.stacked = std::max(grid.stacked, u.batch + 1);
  return grid;
}

std::size_t place_of(const RecordedPhase& phase, const TileGrid& grid, const GemmUnit& u) {
  const std::int64_t row = u.group_row > 0 || u.group_tile > 0
                               ? u.row_tile(u.m_begin, phase.tile.m)
                               : u.batch % grid.stacked * grid.rows_each +
                                     u.m_begin / (phase.tile.m * phase.tile.cluster_m);
  const std::int64_t col = u.n_begin / (phase.tile.n * phase.tile.cluster_n);
  return static_cast<std::size_t>(std::min(row, grid.rows_each * grid.stacked - 1) * grid.cols +
                                  col);
}

std::string kind_text(WalkStep::Kind kind) {
  switch (kind) {
    case WalkStep::Kind::units:
      return "wave";
    case WalkStep::Kind::sums:
      return "sums";
    case WalkStep::Kind::rows:
      return "rows";
    case WalkStep::Kind::heads:
      return "heads";
  }
  return {};
}

void describe_gemm(const MotionTrack& track, const RecordedPhase& phase, const RecordedStep& step,
                   MotionFrame& frame) {
  const TileGrid grid = grid_of(phase);
  frame.tile_rows = grid.rows_each * grid.stacked;
  frame.tile_cols = grid.cols;
  frame.tiles.assign(static_cast<std::size_t>(frame.tile_rows * frame.tile_cols),
                     TileState::waiting);
  const auto first = static_cast<std::size_t>(step.begin),
             last = static_cast<std::size_t>(step.end);
  for (std::size_t i = 0; i < last; ++i) {
    frame.tiles[place_of(phase, grid, phase.units[i])] =
        i < first ? TileState::done : TileState::running;
  }
  const double mainloop = 1 - (step.time > Seconds() ? step.epilogue / step.time : 0);
  const double progress = mainloop > 0 ? std::min(1.0, frame.part / mainloop) : 1;
  const std::int64_t cluster = phase.tile.cluster();
  for (std::size_t i = first; i < last; ++i) {
    for (std::int64_t j = 0; j < cluster; ++j)
      frame.sms.push_back({i, progress, frame.part > mainloop});
  }
  const std::string count =
      grouped(std::ssize(phase.units) * phase.tile.cluster_m * phase.tile.cluster_n) + " tiles";
  const std::string tiles = fmt::format("{} of {} × {}", count, phase.tile.m, phase.tile.n);
  frame.tiles_text = {
      fmt::format("result [{}, {}] in {}", grouped(phase.m), grouped(phase.n), tiles), tiles,
      count};
  const std::string sms = fmt::format("{} of {} SMs", frame.sms.size(), track.sms);
  const std::string along = frame.part > mainloop ? std::string("epilogue")
                                                  : fmt::format("k at {:.0f} %", 100 * progress);
  frame.sms_text = {fmt::format("{} have a tile; {}", sms, along), sms + "; " + along,
                    fmt::format("{} SMs", frame.sms.size())};
  frame.shared_share =
      phase.shared_bytes.as_double() / std::max(1.0, track.shared_per_sm.as_double());
  frame.registers_share =
      phase.register_bytes.as_double() / std::max(1.0, track.registers_per_sm.as_double());
  const auto part_of = [](Bytes used, Bytes all) {
    return fmt::format("{:.0f} of {:.0f} KiB", used.as_double() / 1024, all.as_double() / 1024);
  };
  const std::string shared = part_of(phase.shared_bytes, track.shared_per_sm);
  const std::string registers = part_of(phase.register_bytes, track.registers_per_sm);
  frame.shared_text = {fmt::format("{} stages of operands, {}", phase.tile.stages, shared), shared};
  frame.registers_text = {
      fmt::format("{} × {} sums in fp32, {}", phase.tile.m, phase.tile.n, registers), registers};
}

void describe_rest(const RecordedPhase& phase, std::size_t step, const WalkRecord& record,
                   MotionFrame& frame) {
  frame.tile_rows = 1;
  frame.tile_cols = static_cast<std::int64_t>(phase.last_step - phase.first_step);
  for (std::size_t s = phase.first_step; s < phase.last_step; ++s) {
    frame.tiles.push_back(s < step    ? TileState::done
                          : s == step ? TileState::running
                                      : TileState::waiting);
  }
  const RecordedStep& now = record.steps[step];
  frame.tiles_text =
      now.kind == WalkStep::Kind::heads
          ? MotionText{"key/value heads of all sequences", "key/value heads", "heads"}
      : now.kind == WalkStep::Kind::sums ? MotionText{"partial sums", "sums"}
                                         : MotionText{"rows"};
  frame.sms_text = {"the simulator gives such a kernel to all SMs together", "all SMs together",
                    "all SMs"};
}

}  // namespace

MotionTrack motion_track(const RunView& view, const std::function<void()>& between) {
  MotionTrack track;
  track.run = view.run.id;
  track.label = view.label();
  if (!view.ok()) {
    track.problem = view.result && view.result->problem ? view.result->problem->text
                                                        : "nothing is computed yet";
    return track;
  }
  const RunResult& result = *view.result;
  track.about = subject_of(view);
  if (view.run.is_measurement() || !result.plan || !result.predicted) {
    track.problem = "a measurement has no tiles to show: choose a prediction";
    return track;
  }
  if (result.predicted->fidelity != Fidelity::hierarchy) {
    track.problem = "a roofline has no tiles: set the fidelity to hierarchy";
    return track;
  }
  const PredictionCase& c = *result.block;
  track.record = std::make_shared<const WalkRecord>(
      record_walk(*result.plan, c.gpu, {.launching = c.launching}, between));
  track.sms = c.gpu.sm_count;
  track.shared_per_sm = c.gpu.smem_per_sm;
  track.registers_per_sm = c.gpu.registers_per_sm;
  return track;
}

MotionSpan span_of(const WalkRecord& record, const std::set<std::size_t>& launches) {
  if (launches.empty()) return {Seconds(), record.time()};
  const RecordedLaunch& first = record.launches.at(*launches.begin());
  const RecordedLaunch& last = record.launches.at(*launches.rbegin());
  return {first.start, last.start + last.time};
}

std::optional<std::size_t> step_at(const WalkRecord& record, Seconds time) {
  const auto found = std::ranges::upper_bound(
      record.steps, time, {}, [](const RecordedStep& s) { return s.start + s.time; });
  if (found == record.steps.end()) return std::nullopt;
  return static_cast<std::size_t>(found - record.steps.begin());
}

std::size_t launch_at(const WalkRecord& record, Seconds time) {
  const auto launch = std::ranges::upper_bound(
      record.launches, time, {}, [](const RecordedLaunch& l) { return l.start + l.time; });
  return std::min(static_cast<std::size_t>(launch - record.launches.begin()),
                  record.launches.size() - 1);
}

std::size_t phase_of_step(const WalkRecord& record, std::size_t step) {
  const auto found = std::ranges::upper_bound(record.phases, step, {}, &RecordedPhase::last_step);
  return static_cast<std::size_t>(found - record.phases.begin());
}

Seconds next_step(const WalkRecord& record, MotionSpan span, Seconds time, int by) {
  // A place is the middle of a step: its begin alone would be the end of the one before.
  const auto middle = [](const RecordedStep& s) { return s.start + 0.5 * s.time; };
  std::optional<std::size_t> step = step_at(record, time);
  if (!step) step = record.steps.size();
  if (by > 0 && *step < record.steps.size() && time >= record.steps[*step].start) ++*step;
  if (by < 0 && *step > 0) --*step;
  if (*step >= record.steps.size()) return span.end;
  return std::clamp(middle(record.steps[*step]), span.begin, span.end);
}

L2Cursor::L2Cursor(std::shared_ptr<const WalkRecord> record) : record_(std::move(record)) {
  held_.resize(record_->matrices.size());
  for (const RecordedMatrix& m : record_->matrices)
    chunks_.emplace_back(static_cast<std::size_t>(m.row_blocks * m.col_blocks));
  for (const ChunkChange& c : record_->at_first) set(c, c.after);
}

L2Cursor::Chunk& L2Cursor::at(const ChunkChange& c) {
  const std::int64_t cols = record_->matrices[c.matrix].col_blocks;
  return chunks_[c.matrix][static_cast<std::size_t>(c.row_block * cols + c.col_block)];
}

void L2Cursor::set(const ChunkChange& change, ChunkState state) {
  Chunk& chunk = at(change);
  if (chunk.state == ChunkState::absent) ++held_[change.matrix];
  if (state == ChunkState::absent) --held_[change.matrix];
  chunk.state = state;
}

void L2Cursor::go_to(std::size_t step, double part) {
  for (std::size_t i = fresh_begin_; i < fresh_end_; ++i) at(record_->changes[i]).fresh = false;
  std::size_t first = record_->changes.size(), last = first;
  if (step < record_->steps.size()) {
    first = record_->steps[step].first_change;
    const std::size_t count = record_->steps[step].last_change - first;
    last = first + std::min(count, static_cast<std::size_t>(part * static_cast<double>(count)));
  }
  for (; applied_ < last; ++applied_)
    set(record_->changes[applied_], record_->changes[applied_].after);
  for (; applied_ > last; --applied_)
    set(record_->changes[applied_ - 1], record_->changes[applied_ - 1].before);
  fresh_begin_ = first;
  fresh_end_ = last;
  for (std::size_t i = fresh_begin_; i < fresh_end_; ++i) at(record_->changes[i]).fresh = true;
}

L2Cursor::Cell L2Cursor::cell(std::size_t matrix, std::int64_t row, std::int64_t col) const {
  const std::int64_t cols = record_->matrices[matrix].col_blocks;
  const Chunk& chunk = chunks_[matrix][static_cast<std::size_t>(row * cols + col)];
  switch (chunk.state) {
    case ChunkState::absent:
      return chunk.fresh ? Cell::left : Cell::absent;
    case ChunkState::clean:
      return chunk.fresh ? Cell::came_in : Cell::clean;
    case ChunkState::dirty:
      break;
  }
  return Cell::dirty;
}

MotionFrame frame_at(const MotionTrack& track, MotionSpan span, Seconds now) {
  const WalkRecord& r = *track.record;
  MotionFrame frame;
  frame.now = std::min(span.begin + now, span.end);
  for (const RecordedStep& s : r.steps) {
    if (s.start + s.time <= span.begin || s.start >= frame.now) continue;
    const double from = s.time > Seconds() ? std::max(0.0, (span.begin - s.start) / s.time) : 0;
    const double to = s.time > Seconds() ? std::min(1.0, (frame.now - s.start) / s.time) : 1;
    const auto part = [&](Bytes all) {
      // Whole counts at the end: what was moved is what the prediction says. Times are sums, so an
      // end is one but for rounding.
      constexpr double kRounding = 1e-9;
      return from <= kRounding && to >= 1 - kRounding
                 ? all
                 : Bytes(static_cast<std::int64_t>(all.as_double() * (to - from)));
    };
    frame.hbm.read += part(s.hbm.read);
    frame.hbm.write += part(s.hbm.write);
    frame.evicted += part(s.evicted);
  }
  const std::size_t l = launch_at(r, frame.now);
  frame.launch = l;
  const KernelEstimate& e = r.estimate.kernels[l];
  frame.kernel = e.name;
  frame.bound = fmt::format("{} sets its time, {}", name_of(e.bound), short_time(e.time));
  std::optional<std::size_t> step = step_at(r, frame.now);
  const bool starting = frame.now < r.launches[l].start + r.launches[l].lead;
  // At the very end, and between a launch's last step and its end, the last step is over.
  if (!step || phase_of_step(r, *step) >= r.launches[l].last_phase) {
    if (r.launches[l].first_phase < r.launches[l].last_phase) {
      const std::size_t last = r.phases[r.launches[l].last_phase - 1].last_step;
      if (last > 0) step = last - 1;
    }
  }
  frame.resident = r.resident_at_first;
  if (!step) {
    frame.doing = frame.doing_brief = "launch";
    return frame;
  }
  frame.step = step;
  const RecordedStep& s = r.steps[*step];
  frame.part = s.time > Seconds()     ? std::clamp((frame.now - s.start) / s.time, 0.0, 1.0)
               : frame.now >= s.start ? 1.0
                                      : 0.0;
  if (*step > 0) frame.resident = r.steps[*step - 1].resident;
  if (frame.part >= 1) frame.resident = s.resident;
  const std::size_t p = phase_of_step(r, *step);
  frame.phase = p;
  const RecordedPhase& phase = r.phases[p];
  if (phase.name != frame.kernel && p < r.launches[l].last_phase && p >= r.launches[l].first_phase)
    frame.kernel += ": " + phase.name;
  if (starting || p >= r.launches[l].last_phase || p < r.launches[l].first_phase) {
    frame.doing = "launch: nothing moves yet";
    frame.doing_brief = "launch";
  } else {
    frame.rate = s.time > Seconds()
                     ? BytesPerSecond((s.hbm.read + s.hbm.write).as_double() / s.time.value())
                     : BytesPerSecond();
    if (s.kind == WalkStep::Kind::units) {
      frame.doing_brief = fmt::format("wave {} of {}", *step - phase.first_step + 1,
                                      phase.last_step - phase.first_step);
      frame.doing = fmt::format("{}: {} {} to {} of {}{}", frame.doing_brief,
                                phase.tile.cluster() > 1 ? "clusters" : "tiles",
                                grouped(s.begin + 1), grouped(s.end), grouped(s.of),
                                s.walked ? "" : " (as the waves before, L2 not walked)");
    } else {
      const std::string first = grouped(s.begin + 1), last = grouped(s.end);
      frame.doing_brief = kind_text(s.kind) + " " + (first == last ? first : first + " to " + last);
      frame.doing = frame.doing_brief + " of " + grouped(s.of);
    }
  }
  if (phase.units.empty()) {
    describe_rest(phase, *step, r, frame);
  } else {
    describe_gemm(track, phase, s, frame);
    if (starting) frame.sms.clear();
  }
  return frame;
}

std::size_t tile_of_unit(const RecordedPhase& phase, std::size_t unit) {
  return place_of(phase, grid_of(phase), phase.units.at(unit));
}

std::string unit_text(const RecordedPhase& phase, std::size_t unit) {
  const GemmUnit& u = phase.units.at(unit);
  std::string text = fmt::format("rows {} to {}, columns {} to {}", u.m_begin, u.m_end - 1,
                                 u.n_begin, u.n_end - 1);
  if (u.k_begin > 0 || u.k_end < phase.k)
    text += fmt::format(", k {} to {}", u.k_begin, u.k_end - 1);
  if (u.batch > 0) text += fmt::format(", product {}", u.batch);
  return text;
}

std::vector<std::size_t> matrices_of(const std::shared_ptr<const WalkRecord>& walk,
                                     MotionSpan span) {
  const WalkRecord& record = *walk;
  std::vector<std::size_t> order;
  const auto add = [&](std::size_t m) {
    if (std::ranges::find(order, m) == order.end()) order.push_back(m);
  };
  for (const RecordedLaunch& l : record.launches) {
    if (l.start + l.time <= span.begin || l.start >= span.end) continue;
    for (std::size_t p = l.first_phase; p < l.last_phase; ++p) {
      for (const std::uint32_t m : record.phases[p].loaded) add(m);
      for (const std::uint32_t m : record.phases[p].stored) add(m);
    }
  }
  L2Cursor cursor(walk);
  cursor.go_to(step_at(record, span.begin).value_or(record.steps.size()), 0);
  for (std::size_t m = 0; m < record.matrices.size(); ++m)
    if (cursor.held(m) > 0) add(m);
  return order;
}

Table to_table(const MotionTrack& track) {
  Table table;
  table.name = "motion";
  table.columns = {"run",
                   "kernel",
                   "step",
                   "begin",
                   "end",
                   "of",
                   "start_us",
                   "time_us",
                   "hbm_read_bytes",
                   "hbm_write_bytes",
                   "evicted_bytes",
                   "l2_resident_bytes"};
  if (!track.record) return table;
  const WalkRecord& r = *track.record;
  for (const RecordedPhase& phase : r.phases) {
    for (std::size_t s = phase.first_step; s < phase.last_step; ++s) {
      const RecordedStep& step = r.steps[s];
      add_row(table,
              {track.label, phase.name, kind_text(step.kind), step.begin, step.end, step.of,
               to_us(step.start), to_us(step.time), step.hbm.read.value(), step.hbm.write.value(),
               step.evicted.value(), step.resident.value()},
              track.about);
    }
  }
  return table;
}

}  // namespace fuseline::gui
