#include "sim/motion/walk_record.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/kernels/gemm_model.h"

namespace fuseline {
namespace {

constexpr std::int64_t kMostSteps = 256;  // of rows or heads of one phase

// What L2 held after the last step, chunk by chunk, so that a step's changes are the difference.
class HeldChunks {
 public:
  // Adds what differs to `changes`.
  void take(const std::vector<HeldChunk>& held, const std::vector<std::uint32_t>& numbers,
            std::vector<RecordedMatrix>& matrices, std::vector<ChunkChange>& changes) {
    ++now_;
    std::vector<Place> places;
    places.reserve(held.size());
    for (const HeldChunk& chunk : held) {
      const std::uint32_t matrix = numbers[chunk.tensor];
      Cell& cell = cell_at(matrix, chunk.row_block, chunk.col_block, matrices[matrix]);
      const ChunkState state = chunk.dirty ? ChunkState::dirty : ChunkState::clean;
      if (cell.state != state)
        changes.push_back({matrix, chunk.row_block, chunk.col_block, cell.state, state});
      cell = {state, now_};
      places.push_back({matrix, chunk.row_block, chunk.col_block});
    }
    for (const Place& p : places_) {
      Cell& cell = cell_at(p.matrix, p.row, p.col, matrices[p.matrix]);
      if (cell.seen == now_) continue;
      changes.push_back({p.matrix, p.row, p.col, cell.state, ChunkState::absent});
      cell.state = ChunkState::absent;
    }
    places_ = std::move(places);
  }

 private:
  struct Cell {
    ChunkState state = ChunkState::absent;
    std::uint32_t seen = 0;
  };
  struct Place {
    std::uint32_t matrix, row, col;
  };
  struct Grid {
    std::int64_t rows = 0, cols = 0;
    std::vector<Cell> cells;
  };

  Cell& cell_at(std::uint32_t matrix, std::uint32_t row, std::uint32_t col, RecordedMatrix& of) {
    of.row_blocks = std::max<std::int64_t>(of.row_blocks, row + 1);
    of.col_blocks = std::max<std::int64_t>(of.col_blocks, col + 1);
    if (matrix >= grids_.size()) grids_.resize(matrix + 1);
    Grid& grid = grids_[matrix];
    if (of.row_blocks > grid.rows || of.col_blocks > grid.cols) grow(grid, of);
    return grid.cells[static_cast<std::size_t>(row * grid.cols + col)];
  }

  static void grow(Grid& grid, const RecordedMatrix& of) {
    Grid larger{of.row_blocks, of.col_blocks, {}};
    larger.cells.resize(static_cast<std::size_t>(larger.rows * larger.cols));
    for (std::int64_t r = 0; r < grid.rows; ++r) {
      std::copy_n(grid.cells.begin() + r * grid.cols, grid.cols,
                  larger.cells.begin() + r * larger.cols);
    }
    grid = std::move(larger);
  }

  std::vector<Grid> grids_;  // by matrix
  std::vector<Place> places_;
  std::uint32_t now_ = 0;
};

class Recorder : public WalkWatcher {
 public:
  Recorder(WalkRecord& record, const std::function<void()>& between)
      : record_(record), between_(between) {}

  void block_begins(const Plan& plan, const AddressMap& addresses,
                    const std::vector<const L2Cache*>& caches) override {
    plan_ = &plan;
    const L2Cache& cache = *caches.front();
    for (const L2Cache* one : caches) parts_.push_back({one, one->all_traffic(), {}, -1, {}});
    evicted_ = cache.evicted();
    record_.resident_at_first = cache.resident();
    record_.capacity = cache.capacity();
    for (std::int64_t layer = 0; layer <= addresses.layer(); ++layer) {
      const bool before = layer < addresses.layer();
      for (const Kernel& kernel : plan.kernels) {
        for (const Program& phase : kernel.phases) {
          for (const std::vector<Operand>& operands : {loads(phase), stores(phase)}) {
            for (const Operand& o : operands) {
              name(addresses.locate(o, layer).matrix,
                   plan.graph.tensor(o.tensor).name +
                       (before && addresses.per_layer(o.tensor) ? ", layer before" : ""));
            }
          }
        }
      }
    }
    take(cache, record_.at_first);
  }

  void phase_begins(const WatchedPhase& watched, const AddressMap& addresses) override {
    RecordedPhase phase;
    phase.kernel = kernel_;
    phase.launch = launch_ + watched.number;
    phase.kind = watched.kernel->kind;
    phase.first_step = record_.steps.size();
    if (watched.program != nullptr) {
      phase.name = watched.kernel->phases.size() > 1 ? watched.program->name : watched.kernel->name;
      for (const Operand& o : loads(*watched.program))
        touch(addresses.locate(o).matrix, plan_->graph.tensor(o.tensor).name, phase.loaded);
      for (const Operand& o : stores(*watched.program))
        touch(addresses.locate(o).matrix, plan_->graph.tensor(o.tensor).name, phase.stored);
    } else {
      phase.name = watched.kernel->name + " " + watched.launch->name;
      for (const LaunchAccess& access : watched.launch->moved) {
        const auto* operand = std::get_if<Operand>(&access.of);
        const std::string tensor = operand != nullptr ? plan_->graph.tensor(operand->tensor).name
                                                      : std::get<Scratch>(access.of).name;
        touch(addresses.locate(*watched.kernel, access).matrix, tensor,
              access.store ? phase.stored : phase.loaded);
      }
    }
    record_.phases.push_back(std::move(phase));
    asked_.clear();
  }

  void step_ends(const WalkStep& step, const L2Cache& cache) override {
    if (between_) between_();
    const bool counted = step.kind == WalkStep::Kind::rows || step.kind == WalkStep::Kind::heads;
    Part& part = *std::ranges::find(parts_, &cache, &Part::cache);
    part.pending += step.asked;
    if (part.pending_begin < 0) part.pending_begin = step.begin;
    const bool enough =
        step.end == step.of || step.begin * kMostSteps / step.of != step.end * kMostSteps / step.of;
    if (counted && !enough) return;
    if (counted && part.pending == Bytes()) {  // a part of the walk that touches nothing
      part.pending_begin = -1;
      return;
    }
    const HbmTraffic all = cache.all_traffic();
    part.moved.push_back({all.read - part.traffic.read, all.write - part.traffic.write});
    part.traffic = all;
    const Bytes asked = std::exchange(part.pending, Bytes());
    const std::int64_t begin = std::exchange(part.pending_begin, -1);
    if (&part != &parts_.front()) return;
    RecordedStep s;
    s.kind = step.kind;
    s.begin = counted ? begin : step.begin;
    s.end = step.end;
    s.of = step.of;
    s.evicted = cache.evicted() - evicted_;
    s.resident = cache.resident();
    s.first_change = record_.changes.size();
    take(cache, record_.changes);
    s.last_change = record_.changes.size();
    evicted_ = cache.evicted();
    record_.steps.push_back(s);
    asked_.push_back(asked);
  }

  // Steps move the mean of what all parts move, rounded as the kernel's bytes are: those of a GEMM
  // each, others together.
  void take_means(std::size_t first_step, bool each) {
    const auto count = std::ssize(parts_);
    HbmTraffic sum, given;
    for (std::size_t s = first_step; s < record_.steps.size(); ++s) {
      if (each) sum = given = {};
      for (const Part& part : parts_) {
        sum.read += part.moved[s - first_step].read;
        sum.write += part.moved[s - first_step].write;
      }
      const HbmTraffic mean{Bytes(ceil_div(sum.read.value(), count)),
                            Bytes(ceil_div(sum.write.value(), count))};
      record_.steps[s].hbm = {mean.read - given.read, mean.write - given.write};
      given = mean;
    }
    for (Part& part : parts_) part.moved.clear();
  }

  // Until kernel_ends() a step's time is what it takes at the boost clock.
  void phase_ends(const WalkedKernel& walked, const Gpu& gpu) override {
    RecordedPhase& phase = record_.phases.back();
    take_means(phase.first_step, !walked.gemms.empty());
    if (walked.gemms.empty()) {
      share(phase.first_step, time_at(walked, gpu, 1.0));
    } else {
      describe_gemm(phase, walked.gemms.front(), gpu);
    }
    phase.last_step = record_.steps.size();
  }

  void kernel_ends(std::size_t launches) override {
    // The launch that adds up partial sums has their step.
    const std::size_t count = record_.phases.size();
    for (std::size_t p = first_phase_; p < count && launches > 1; ++p) split_off_sums(p);
    ++kernel_;
    launch_ += launches;
    first_phase_ = record_.phases.size();
  }

  // Gives launches their times, and every step its part of them.
  void finish() {
    Seconds now;
    std::size_t phase = 0;
    for (std::size_t i = 0; i < record_.estimate.kernels.size(); ++i) {
      const KernelEstimate& e = record_.estimate.kernels[i];
      RecordedLaunch launch;
      launch.start = now;
      launch.time = e.time;
      launch.first_phase = phase;
      Seconds steps;
      Bytes written;
      Seconds lead = e.launch_time;
      while (phase < record_.phases.size() && record_.phases[phase].launch == i) {
        const RecordedPhase& p = record_.phases[phase++];
        if (phase == launch.first_phase + 1) lead += p.start;
        for (std::size_t s = p.first_step; s < p.last_step; ++s) {
          steps += record_.steps[s].time;
          written += record_.steps[s].hbm.write;
        }
      }
      launch.last_phase = phase;
      launch.written_later = e.hbm_write - written;
      launch.lead = steps > Seconds() ? std::min(e.time, lead) : e.time;
      set_times(launch, steps);
      now += e.time;
      record_.launches.push_back(launch);
    }
    FUSELINE_ASSERT(phase == record_.phases.size(), "a phase without a launch");
  }

 private:
  std::uint32_t matrix_of(std::uint32_t tensor) {
    if (tensor >= numbers_.size()) numbers_.resize(tensor + 1, kNone);
    if (numbers_[tensor] == kNone) {
      numbers_[tensor] = static_cast<std::uint32_t>(record_.matrices.size());
      record_.matrices.push_back({{{0, "partial results"}}, 1, 1});
    }
    return numbers_[tensor];
  }

  void take(const L2Cache& cache, std::vector<ChunkChange>& changes) {
    const std::vector<HeldChunk> held = cache.held();
    for (const HeldChunk& chunk : held) matrix_of(chunk.tensor);
    held_.take(held, numbers_, record_.matrices, changes);
  }

  std::uint32_t name(const CachedMatrix& m, const std::string& tensor) {
    const std::uint32_t number = matrix_of(m.tensor);
    RecordedMatrix& matrix = record_.matrices[number];
    matrix.row_blocks = std::max(matrix.row_blocks, m.row_blocks());
    matrix.col_blocks = std::max(matrix.col_blocks, m.col_blocks());
    const std::size_t phase = record_.phases.size();
    if (matrix.names.back().tensor == tensor) return number;
    if (matrix.names.back().phase == phase) matrix.names.pop_back();
    matrix.names.push_back({phase, tensor});
    return number;
  }

  void touch(const CachedMatrix& m, const std::string& tensor, std::vector<std::uint32_t>& all) {
    const std::uint32_t number = name(m, tensor);
    if (std::ranges::find(all, number) == all.end()) all.push_back(number);
  }

  // By the bytes that steps ask for; where nothing is asked for, equally.
  void share(std::size_t first, Seconds time) {
    double sum = 0;
    for (const Bytes bytes : asked_) sum += bytes.as_double();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      record_.steps[first + i].time =
          time * (sum > 0 ? asked_[i].as_double() / sum : 1.0 / static_cast<double>(asked_.size()));
    }
  }

  void describe_gemm(RecordedPhase& phase, const WalkedGemm& gemm, const Gpu& gpu) {
    const GemmWalk walk = gemm_walk(gemm.problem, gpu);
    const GemmProblem& problem = walk.problem;
    const GemmSchedule schedule = schedule_of(walk);
    const std::vector<WaveSpan> spans = wave_spans(problem, walk.tile, gemm.estimate.waves, gpu);
    const std::vector<UnitRange> ranges = schedule.waves();
    FUSELINE_ASSERT(ranges.size() == spans.size(), "waves of a GEMM");
    phase.tile = walk.tile;
    phase.m = problem.m;
    phase.n = problem.n;
    phase.k = problem.k;
    phase.blocks_at_once = walk.blocks_at_once;
    phase.units = schedule.units;
    phase.start = std::max(Seconds(), gemm.estimate.time.launch - gpu.tiny_kernel);
    phase.shared_bytes =
        Bytes(walk.tile.stages * (walk.tile.m * walk.tile.k * problem.a.matrix.element +
                                  walk.tile.n * walk.tile.k * problem.b.matrix.element));
    phase.register_bytes = Bytes(walk.tile.m * walk.tile.n * 4);

    const std::vector<RecordedStep> walked(
        record_.steps.begin() + static_cast<std::ptrdiff_t>(phase.first_step), record_.steps.end());
    record_.steps.resize(phase.first_step);
    std::size_t next = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      RecordedStep step;
      if (next < walked.size() && walked[next].kind == WalkStep::Kind::units &&
          walked[next].begin == ranges[i].begin) {
        step = walked[next++];
      } else {
        step.walked = false;
        step.first_change = step.last_change =
            next < walked.size() ? walked[next].first_change : record_.changes.size();
        step.resident =
            record_.steps.empty() ? record_.resident_at_first : record_.steps.back().resident;
      }
      step.kind = WalkStep::Kind::units;
      step.begin = ranges[i].begin;
      step.end = ranges[i].end;
      step.of = std::ssize(schedule.units);
      step.hbm = gemm.estimate.waves[i].hbm;
      step.time = spans[i].mainloop + spans[i].epilogue;
      step.epilogue = spans[i].epilogue;
      record_.steps.push_back(step);
    }
    for (; next < walked.size(); ++next) {  // the sums of a split K
      record_.steps.push_back(walked[next]);
      record_.steps.back().time =
          gemm.estimate.reduction ? gemm.estimate.reduction->time : Seconds();
    }
  }

  // Of a phase that ends with the sums of a split K: these become a phase of the next launch.
  void split_off_sums(std::size_t number) {
    RecordedPhase& phase = record_.phases[number];
    if (phase.units.empty() || phase.first_step == phase.last_step) return;
    if (record_.steps[phase.last_step - 1].kind != WalkStep::Kind::sums) return;
    RecordedPhase sums;
    sums.name = phase.name + ", sums";
    sums.kernel = phase.kernel;
    sums.launch = phase.launch + 1;
    sums.kind = KernelKind::reduction;
    sums.stored = phase.stored;
    sums.last_step = phase.last_step;
    sums.first_step = --phase.last_step;
    record_.phases.insert(record_.phases.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                          std::move(sums));
  }

  void set_times(const RecordedLaunch& launch, Seconds steps) {
    const double scale = steps > Seconds() ? (launch.time - launch.lead) / steps : 0;
    Seconds now = launch.start + launch.lead;
    for (std::size_t p = launch.first_phase; p < launch.last_phase; ++p) {
      for (std::size_t s = record_.phases[p].first_step; s < record_.phases[p].last_step; ++s) {
        RecordedStep& step = record_.steps[s];
        step.start = now;
        step.time *= scale;
        step.epilogue *= scale;
        now += step.time;
      }
    }
  }

  WalkRecord& record_;
  const std::function<void()>& between_;
  const Plan* plan_ = nullptr;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> numbers_;  // of matrices, by the cache's tensor
  HeldChunks held_;
  // One of the caches whose mean the L2 is. The steps are drawn of the first.
  struct Part {
    const L2Cache* cache;
    HbmTraffic traffic;               // so far
    Bytes pending;                    // asked since the last step
    std::int64_t pending_begin = -1;  // where that began
    std::vector<HbmTraffic> moved;    // by each step of the phase
  };
  std::vector<Part> parts_;
  Bytes evicted_;
  std::vector<Bytes> asked_;  // by steps of the phase
  std::size_t kernel_ = 0, launch_ = 0, first_phase_ = 0;
};

}  // namespace

const std::string& RecordedMatrix::name_at(std::size_t phase) const {
  const Name* found = &names.front();
  for (const Name& n : names)
    if (n.phase <= phase) found = &n;
  return found->tensor;
}

WalkRecord record_walk(const Plan& plan, const Gpu& gpu, const SimulationOptions& options,
                       const std::function<void()>& between) {
  WalkRecord record;
  Recorder recorder(record, between);
  SimulationOptions watched = options;
  watched.watcher = &recorder;
  record.estimate = simulate(plan, gpu, Fidelity::hierarchy, watched);
  recorder.finish();
  return record;
}

}  // namespace fuseline
