#if FUSELINE_HAS_CUDA

#include "cuda/run/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/plan_source.h"
#include "cuda/run/block_check.h"
#include "cuda/run/block_launch.h"
#include "cuda/run/block_on_gpu.h"
#include "cuda/run/count_kernels.h"
#include "cuda/run/instruments.h"
#include "cuda/run/rival_turns.h"
#include "cuda/run/timing.h"
#include "cuda/run/tune.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::cuda {

namespace {

constexpr std::chrono::milliseconds kRest{200};
constexpr int kWarmUps = 3;
// A replay should be long beside the pause between two graphs.
constexpr double kReplaySeconds = 1e-3;
constexpr int kMostRepeats = 32;
// What a core of the host computes in about ten seconds in fp64.
constexpr double kCheckFlopsPerThread = 4e11;

// All bursts of a block.
struct Bursts {
  std::vector<Seconds> times{};
  std::vector<GpuStateSummary> states{};
};

// A policy on the way through the measurement.
struct Subject {
  Plan plan;
  executor::Inputs inputs{};
  std::unique_ptr<BlockOnGpu> block{};
  std::unique_ptr<LaunchGraph> graph{};
  int blocks_of_a_replay = 1;
  Bursts bursts{};
  std::uint64_t bits = 0;
  MeasuredPolicy result{};
};

// The block's times, and what the GPU did meanwhile.
GpuStateSummary sum_up(const Bursts& bursts, MeasuredBlock& b) {
  GpuStateSummary state = merged(bursts.states);
  b.time = spread_of(bursts.times);
  b.sm_clock_median = state.sm_clock_median;
  b.sm_clock_least = state.sm_clock_least;
  b.power = state.power_mean;
  if (state.samples > 0)
    b.throttle =
        state.throttling.empty() ? "none" : fmt::format("{}", fmt::join(state.throttling, " + "));
  return state;
}

class Measuring {
 public:
  Measuring(const ModelConfig& config, const Workload& workload,
            const std::vector<std::string>& policies, const Gpu& described,
            const MeasureOptions& options)
      : config_(config),
        workload_(workload),
        described_(described),
        options_(options),
        store_(device_, CubinCache::standard(),
               options.ampere ? std::optional(SmTarget::sm_80) : std::nullopt),
        stream_(device_.stream()),
        instruments_(device_, {.library = options.library,
                               .attention = options.library_attention,
                               .counters = options.counters}) {
    result_.libraries = instruments_.names();
    result_.library_attention = instruments_.attention() != nullptr;
    result_.counters = instruments_.checked();
    result_.notes = instruments_.notes();
    result_.overlap = options.overlap;
    if (options.plan) subjects_.push_back({.plan = *options.plan});
    for (const std::string& policy : policies)
      subjects_.push_back({.plan = make_plan(policy, config, workload, plan_target(described))});
  }

  GpuMeasurement run() {
    const DeviceInfo& info = device_.info();
    result_.device = fmt::format("{}, {} SMs, {} MiB L2", info.name, info.multiprocessors,
                                 info.l2.value() >> 20);
    result_.driver = monitor_.driver_version();
    const ToolkitVersion toolkit = Compiler().version();
    result_.toolkit = fmt::format("CUDA {}.{}", toolkit.major, toolkit.minor);
    if (!monitor_.missing().empty()) result_.notes.push_back(monitor_.missing());
    look_for_kernels();
    // They get ready while our own are checked.
    rivals_.start(options_.rival_command, config_, workload_, options_.rivals,
                  options_.workers.stop);
    check();
    put_on_gpu();
    if (!options_.rivals.empty()) report("waiting for the rivals");
    rivals_.get_ready();
    time();
    for (Subject& s : subjects_) look_again(s);
    if (instruments_.profiler() != nullptr) count();
    if (options_.tune) tune();
    for (Subject& s : subjects_) result_.policies.push_back(std::move(s.result));
    return std::move(result_);
  }

 private:
  PrepareOptions prepare_options() {
    return {.library = instruments_.library(),
            .attention_library = instruments_.attention(),
            .threads = options_.workers.threads,
            .overlap = options_.overlap};
  }

  void look_at_stop() const {
    if (options_.workers.stop != nullptr && *options_.workers.stop) throw executor::Cancelled("");
  }
  void report(const std::string& what) {
    look_at_stop();
    if (options_.progress) options_.progress(what, std::min(0.99, done_ / steps()));
    done_ += 1;
  }
  [[nodiscard]] double steps() const {
    const double each = 4 + (options_.check != CheckSize::none ? 1 : 0) +
                        (instruments_.profiler() != nullptr ? 1 : 0);
    return 5 + each * static_cast<double>(subjects_.size()) +
           static_cast<double>(options_.rivals.size());
  }

  // A kernel that no code of ours runs is said at once, not after minutes of checks of others.
  void look_for_kernels() {
    const auto look = [&](const Plan& plan) {
      plan_sources(store_, device_.info(), plan, described_, prepare_options());
    };
    for (const Subject& s : subjects_) look(s.plan);
    if (options_.check != CheckSize::none)
      look(make_plan("unfused", config_, check_workload(), plan_target(described_)));
  }

  // ---- the check ----

  [[nodiscard]] Workload check_workload() const {
    const double most = kCheckFlopsPerThread * options_.workers.threads;
    if (options_.check == CheckSize::full || options_.plan) return workload_;
    return shrunk(config_, workload_, options_.check == CheckSize::small ? most / 16 : most);
  }

  // A block that runs once, of its results.
  std::unique_ptr<executor::Memory> run_once(const Plan& plan, const executor::Inputs& inputs,
                                             const PrepareOptions& prepare) {
    BlockOnGpu block(device_, store_, plan, described_, 1, prepare);
    block.give(inputs);
    block.run_step_by_step(stream_);
    return block.result(inputs);
  }

  void check() {
    if (options_.check == CheckSize::none) return;
    const Workload workload = check_workload();
    result_.checked_as = {.model = config_.name, .execution = "", .workload = workload};
    report("inputs of the check");
    BlockCheck check(config_, workload, options_.seed, options_.workers);
    const bool full = workload.batch == workload_.batch && workload.seq == workload_.seq;
    report("fp64 reference");
    check.compute_reference();
    const Plan unfused = make_plan("unfused", config_, workload, plan_target(described_));
    report("unfused (baseline)");
    {
      const executor::Inputs inputs = check.inputs_of(unfused);
      check.set_baseline(unfused, *run_once(unfused, inputs, prepare_options()));
    }
    for (Subject& s : subjects_) {
      report(s.plan.policy + ": check");
      const bool given = options_.plan && &s == &subjects_.front();
      const Plan plan =
          given ? s.plan : make_plan(s.plan.policy, config_, workload, plan_target(described_));
      const executor::Inputs inputs = check.inputs_of(plan);
      PrepareOptions prepare = prepare_options();
      // The same kernels as at the measured sizes.
      prepare.tile = [&](const std::string& name) { return tile_of(s.plan, name); };
      const auto memory = run_once(plan, inputs, prepare);
      s.result.not_finite = first_not_finite(plan, *memory, options_.workers);
      s.result.tensors = check.judge(plan, *memory, inputs);
    }
    if (full) values_.emplace(std::move(check));
  }

  [[nodiscard]] std::optional<GemmTile> tile_of(const Plan& plan, const std::string& name) const {
    const auto kernel = std::ranges::find(plan.kernels, name, &Kernel::name);
    if (kernel == plan.kernels.end() || kernel->phases.size() != 1) return std::nullopt;
    const Program& program = kernel->phases.front();
    if (!std::holds_alternative<GemmMainloop>(program.mainloop)) return std::nullopt;
    return own_tile(plan, program, described_);
  }

  // ---- the time ----

  void put_on_gpu() {
    report("inputs");
    if (!values_) values_.emplace(config_, workload_, options_.seed, options_.workers);
    for (Subject& s : subjects_) {
      report(s.plan.policy + ": on the GPU");
      s.inputs = values_->inputs_of(s.plan);
      const int layers = layers_beyond_l2(s.plan, device_.info().l2);
      s.block = std::make_unique<BlockOnGpu>(device_, store_, s.plan, described_, layers,
                                             prepare_options());
      s.block->give(s.inputs);
      s.block->run_step_by_step(stream_);
      const auto outputs = s.block->outputs();
      s.bits = fingerprint(outputs, options_.workers);
      if (s.result.not_finite.empty() && !all_finite(outputs, options_.workers))
        s.result.not_finite =
            first_not_finite(s.plan, *s.block->result(s.inputs), options_.workers);
      capture_replay(s);
      describe_result(s);
    }
  }

  void capture_replay(Subject& s) {
    const double predicted =
        simulate(s.plan, described_, Fidelity::hierarchy).time.value() * s.block->layers();
    const int repeats =
        std::clamp(static_cast<int>(std::ceil(kReplaySeconds / predicted)), 1, kMostRepeats);
    s.blocks_of_a_replay = repeats * s.block->layers();
    s.graph = std::make_unique<LaunchGraph>(capture(stream_, [&](Stream& stream) {
      for (int i = 0; i < s.blocks_of_a_replay; ++i) s.block->launch(stream, i % s.block->layers());
    }));
  }

  void describe_result(Subject& s) {
    MeasuredPolicy& r = s.result;
    r.policy = s.plan.policy;
    r.layers = s.block->layers();
    r.memory = s.block->bytes();
    for (const PreparedKernel& k : s.block->kernels())
      if (k.library) ++(k.kind == KernelKind::attention ? r.library_attentions : r.library_gemms);
    if (instruments_.attention() != nullptr && r.library_attentions == 0)
      result_.notes.push_back(fmt::format(
          "{}: cuDNN has no attention of the form that is in this plan, ours runs", r.policy));
    r.block.block = {.model = config_.name, .execution = s.plan.policy, .workload = workload_};
    r.block.timer = "graph";
  }

  // Bursts, each after a rest: one long burst would draw on the power limit, and the policy that
  // runs last would pay for those before it. In every other round all run backwards.
  void time() {
    std::vector<Bursts> theirs(rivals_.ready().size());
    const std::size_t ours = subjects_.size(), all = ours + theirs.size();
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < all; ++i) {
        const std::size_t turn = round % 2 == 0 ? i : all - 1 - i;
        if (turn >= ours + rivals_.ready().size()) continue;
        if (round == 0)
          report((turn < ours ? subjects_[turn].plan.policy : rivals_.ready()[turn - ours]) +
                 ": timing");
        look_at_stop();
        std::this_thread::sleep_for(kRest);
        monitor_.start();
        turn < ours ? burst(subjects_[turn]) : rival_burst(turn - ours, theirs[turn - ours]);
      }
    }
    rivals_.end();  // counters must have the GPU alone
    for (Subject& s : subjects_) {
      MeasuredBlock& b = s.result.block;
      s.result.state = sum_up(s.bursts, b);
      for (const executor::ComparedTensor& t : s.result.tensors)
        if (t.output) b.checked = std::max(b.checked.value_or(0), t.error.relative_l2);
    }
    for (std::size_t i = 0; i < rivals_.ready().size(); ++i) {
      MeasuredBlock& b = result_.rivals.emplace_back();
      b.block = {.model = config_.name, .execution = rivals_.ready()[i], .workload = workload_};
      b.timer = "graph";
      sum_up(theirs[i], b);
    }
    result_.rival_framework = rivals_.framework();
    result_.notes.insert(result_.notes.end(), rivals_.notes().begin(), rivals_.notes().end());
  }

  // The monitor watches already.
  void burst(Subject& s) {
    const auto times = replay_times(device_, stream_, *s.graph, kWarmUps, options_.replays,
                                    "timing replays of policy " + s.plan.policy);
    s.bursts.states.push_back(monitor_.stop());
    for (const Seconds t : times) s.bursts.times.push_back(t * (1.0 / s.blocks_of_a_replay));
    if (!options_.seen) return;
    MeasuredBlock so_far = s.result.block;
    sum_up(s.bursts, so_far);
    options_.seen(so_far);
  }

  void rival_burst(std::size_t i, Bursts& bursts) {
    const auto times = rivals_.burst(i, kWarmUps, options_.replays);
    const GpuStateSummary state = monitor_.stop();
    if (!times) return;
    bursts.states.push_back(state);
    bursts.times.insert(bursts.times.end(), times->begin(), times->end());
  }

  void look_again(Subject& s) {
    report(s.plan.policy + ": check after timing");
    if (s.block->overwrites_states()) {
      s.block->give(s.inputs);
      s.block->run_step_by_step(stream_);
    }
    for (const PreparedKernel& k : s.block->kernels())
      if (k.instructions != nullptr)
        s.result.instructions = instruction_times(*k.launches.front(), *k.instructions, described_);
    s.result.repeats = fingerprint(s.block->outputs(), options_.workers) == s.bits;
  }

  void count() {
    for (Subject& s : subjects_) {
      report(s.plan.policy + ": counters");
      const CountedBlock counted = count_kernels(*instruments_.profiler(), stream_, *s.block);
      MeasuredBlock& b = s.result.block;
      b.hbm_read = counted.block.hbm_read;
      b.hbm_write = counted.block.hbm_write;
      b.l2 = counted.block.l2;
      if (options_.seen) options_.seen(b);
      s.result.trace = MeasuredTrace{.block = b.block, .kernels = counted.kernels};
      time_kernels(s);
    }
  }

  void time_kernels(Subject& s) {
    std::vector<std::function<void(Stream&)>> parts;
    for (PreparedKernel& k : s.block->kernels())
      parts.emplace_back([&k](Stream& stream) {
        for (const auto& launch : k.launches) launch->launch(stream);
      });
    // Something runs before the first kernel, or that one's time would hold the graph's start too:
    // where one block has the only layer, the block itself.
    const auto other_layers = [&](Stream& stream) {
      for (int layer = 1; layer < s.block->layers(); ++layer) s.block->launch(stream, layer);
      if (s.block->layers() == 1) s.block->launch(stream, 0);
    };
    std::this_thread::sleep_for(kRest);
    const auto times = part_times(device_, stream_, other_layers, parts, options_.replays,
                                  s.result.block.time.median);
    for (std::size_t i = 0; i < times.size(); ++i)
      s.result.trace->kernels[i].time_in_graph = times[i];
  }

  void tune() {
    for (Subject& s : subjects_) {
      s.result.tuned = tune_gemms(
          device_, store_, s.plan, *s.block, described_, prepare_options(),
          [&](const std::string& kernel) { report(s.plan.policy + ": tiles of " + kernel); });
    }
  }

  const ModelConfig& config_;
  const Workload& workload_;
  const Gpu& described_;
  const MeasureOptions& options_;
  Device device_;
  KernelStore store_;
  Stream stream_;
  GpuMonitor monitor_;
  Instruments instruments_;
  std::optional<BlockCheck> values_;  // at the measured sizes
  std::vector<Subject> subjects_;
  RivalTurns rivals_;
  GpuMeasurement result_;
  double done_ = 0;
};

}  // namespace

GpuMeasurement measure(const ModelConfig& config, const Workload& workload,
                       const std::vector<std::string>& policies, const Gpu& described,
                       const MeasureOptions& options) {
  return Measuring(config, workload, policies, described, options).run();
}

}  // namespace fuseline::cuda

#else

#include "base/error.h"
#include "cuda/run/measure.h"

namespace fuseline::cuda {

GpuMeasurement measure(const ModelConfig&, const Workload&, const std::vector<std::string>&,
                       const Gpu&, const MeasureOptions&) {
  throw MissingError(
      "this fuseline was built without the CUDA toolkit: install CUDA 12 or 13 (Ampere and Hopper) "
      "or Debian's nvidia-cuda-toolkit (Ampere) and build again");
}

}  // namespace fuseline::cuda

#endif
