#if FUSELINE_HAS_CUDA

#include "cuda/run/measure_programs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/run/block_check.h"
#include "cuda/run/block_on_gpu.h"
#include "cuda/run/count_kernels.h"
#include "cuda/run/instruments.h"
#include "cuda/run/prepare.h"
#include "cuda/run/timing.h"
#include "sim/block/estimate.h"

namespace fuseline::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgramRest{100};
constexpr int kSeeds = 3;
constexpr int kProgramWarmUps = 3;
constexpr double kShortestReplay = 1e-3;  // long beside the pause between two graphs
constexpr int kMostProgramRepeats = 64;
constexpr int kMostCopies = 64;
constexpr std::int64_t kL2Capacities = 4;  // pass between two uses of the same tensor

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Inputs once and outputs once.
Bytes compulsory_of(const Plan& plan) {
  std::set<TensorId> seen;
  Bytes sum;
  const auto once = [&](const Operand& o) {
    const Role role = plan.graph.tensor(o.tensor).role;
    if (role != Role::activation && seen.insert(o.tensor).second) sum += plan.graph.bytes(o);
  };
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      for (const Operand& o : loads(p)) once(o);
      for (const Operand& o : stores(p)) once(o);
    }
  return sum;
}

// Of the products alone: what tensor cores have to do.
Flops flops_of(const Plan& plan) {
  Flops sum;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop))
        sum += checked_product<Flops>(2, gemm->M, gemm->N, gemm->K, gemm->batch);
  return sum;
}

Dtype products_in(const Plan& plan) {
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop)) {
        if (gemm->activation.quantised()) return Dtype::e4m3;
        return plan.graph.tensor(gemm->a.tensor).dtype;
      }
  return Dtype::bf16;
}

// In memory: what a chain hands over is not.
std::vector<TensorId> stored_tensors(const Plan& plan) {
  std::set<TensorId> stored;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      for (const Operand& o : stores(p))
        if (plan.homes[static_cast<std::size_t>(o.tensor.index)] == Home::hbm)
          stored.insert(o.tensor);
  return {stored.begin(), stored.end()};
}

// Runs that change what they read do not repeat.
void refuse_changed_inputs(const Plan& plan) {
  std::set<TensorId> stored;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      std::set<TensorId> given;
      for (const Operand& o : loads(p))
        if (!stored.contains(o.tensor)) given.insert(o.tensor);
      for (const Operand& o : stores(p)) {
        if (given.contains(o.tensor))
          throw InputError({.field = "program " + p.name,
                            .value = plan.graph.tensor(o.tensor).name,
                            .message = "is read and changed: no run repeats the one before, so "
                                       "results cannot be looked at again after the timing",
                            .allowed = "programs that store to other tensors than they are given"});
        stored.insert(o.tensor);
      }
    }
}

// A plan in several copies on the GPU.
struct Runner {
  const Plan* plan = nullptr;
  std::vector<TensorId> stored{};
  std::vector<std::unique_ptr<BlockOnGpu>> copies{};
  std::vector<executor::Inputs> inputs{};  // by run: the last seed first
  std::vector<std::unique_ptr<executor::Memory>> results{};
  std::unique_ptr<LaunchGraph> graph{};
  int runs = 1;  // of the plan in a replay
  std::vector<Seconds> times{};
  std::vector<GpuStateSummary> states{};
  MeasuredPrograms result{};
};

class MeasuringPrograms {
 public:
  MeasuringPrograms(const Plan& programs, const Plan* unfused, const Gpu& described,
                    const ProgramMeasureOptions& options)
      : described_(described),
        options_(options),
        store_(device_, CubinCache::standard()),
        cheating_store_(device_, CubinCache::standard()),
        stream_(device_.stream()),
        instruments_(device_, {.library = unfused != nullptr, .counters = options.counters}) {
    runners_.push_back({.plan = &programs});
    if (unfused != nullptr) runners_.push_back({.plan = unfused});
    cheating_store_.replace_texts(options.replace_source);
  }

  ProgramMeasurement run() {
    const Clock::time_point start = Clock::now();
    stage_ = start;
    describe_machine();
    compile_and_draw();
    for (Runner& r : runners_) put_on_gpu(r);
    end_stage("running with three seeds");
    check();
    end_stage("checking against fp64");
    time();
    end_stage("timing");
    for (Runner& r : runners_) look_again(r);
    end_stage("looking at the results again");
    out_.seconds = since(start);
    for (Runner& r : runners_) {
      time_kernels(r);
      r.result.faults = claim_faults(r.result.evidence, described_);
    }
    out_.programs = std::move(runners_.front().result);
    if (runners_.size() > 1) out_.unfused = std::move(runners_.back().result);
    return std::move(out_);
  }

 private:
  void report(const std::string& what, double done) {
    if (options_.workers.stop != nullptr && *options_.workers.stop) throw executor::Cancelled("");
    if (options_.progress) options_.progress(what, done);
  }

  void end_stage(const char* what) {
    out_.stages.push_back({what, since(stage_)});
    stage_ = Clock::now();
  }

  [[nodiscard]] PrepareOptions prepare_options(bool fused) {
    return {.library = fused ? nullptr : instruments_.library(),
            .threads = options_.workers.threads};
  }

  // The compiler works on the kernels of all plans at once, and beside it the inputs are drawn.
  void compile_and_draw() {
    report("compiling", 0.05);
    std::future<void> compiled = std::async(std::launch::async, [&] {
      std::vector<Source> sources;
      for (Runner& r : runners_)
        for (Source& source : plan_sources(store_, device_.info(), *r.plan, described_,
                                           prepare_options(&r == runners_.data())))
          sources.push_back(std::move(source));
      store_.compile_ahead(sources, options_.workers.threads);
    });
    for (std::size_t seed = 0; seed < kSeeds; ++seed)
      seeds_.push_back(executor::random_storage(runners_.front().plan->graph, options_.seed + seed,
                                                options_.workers));
    end_stage("drawing inputs, beside the compiler");
    compiled.get();
    end_stage("compiling, behind the inputs");
  }

  void describe_machine() {
    const DeviceInfo& info = device_.info();
    out_.device = fmt::format("{}, {} SMs, {} MiB L2", info.name, info.multiprocessors,
                              info.l2.value() >> 20);
    out_.driver = monitor_.driver_version();
    const ToolkitVersion toolkit = Compiler().version();
    out_.toolkit = fmt::format("CUDA {}.{}", toolkit.major, toolkit.minor);
    out_.notes = instruments_.notes();
  }

  // Weights and inputs that a plan shares with the programs, and nothing else.
  executor::Inputs inputs_of(const Plan& plan, std::size_t seed) const {
    executor::Inputs inputs;
    for (const Tensor& t : plan.graph.tensors())
      if (const auto found = seeds_[seed].find(t.name); found != seeds_[seed].end())
        inputs.insert(*found);
    return inputs;
  }

  std::vector<executor::Storage> stored_in(const Runner& r, const BlockOnGpu& copy) const {
    std::vector<executor::Storage> all;
    for (const TensorId id : r.stored) all.push_back(copy.tensors().download(id));
    return all;
  }

  // The copies, and a checked run with each seed. All copies keep the inputs of the first.
  void put_on_gpu(Runner& r) {
    const bool fused = &r == runners_.data();
    report(fused ? "loading" : "loading the unfused kernels", fused ? 0.3 : 0.45);
    r.stored = stored_tensors(*r.plan);
    const std::int64_t each = std::max<std::int64_t>(1, gpu_bytes(*r.plan).value());
    const std::int64_t wanted = (kL2Capacities * device_.info().l2.value() + each - 1) / each + 1;
    r.result.copies = static_cast<int>(std::clamp<std::int64_t>(wanted, 2, kMostCopies));
    KernelStore& store = fused && options_.replace_source ? cheating_store_ : store_;
    for (int i = 0; i < r.result.copies; ++i)
      r.copies.push_back(std::make_unique<BlockOnGpu>(device_, store, *r.plan, described_, 1,
                                                      prepare_options(fused)));
    report(fused ? "running" : "running the unfused kernels", fused ? 0.35 : 0.5);
    for (std::size_t seed = kSeeds; seed-- > 0;) {  // the first seed last: its results stay
      r.inputs.push_back(inputs_of(*r.plan, seed));
      BlockOnGpu& copy = *r.copies.front();
      copy.give(r.inputs.back());
      copy.run_step_by_step(stream_);
      r.results.push_back(copy.result(r.inputs.back()));
      r.result.evidence.seeds.push_back({.seed = options_.seed + seed,
                                         .bits = fingerprint(stored_in(r, copy), options_.workers),
                                         .check = {}});
    }
    r.result.evidence.flops = flops_of(*r.plan);
    r.result.evidence.compulsory = compulsory_of(*runners_.front().plan);
    r.result.evidence.products = products_in(*r.plan);
    const double predicted = simulate(*r.plan, described_, Fidelity::hierarchy).time.value();
    const int turns =
        std::clamp(static_cast<int>(std::ceil(kShortestReplay / predicted / r.result.copies)), 1,
                   std::max(1, kMostProgramRepeats / r.result.copies));
    r.runs = turns * r.result.copies;
    // Poisoned again: whatever the timed runs do not store is seen.
    for (const auto& copy : r.copies) copy->give(r.inputs.back());
    r.graph = std::make_unique<LaunchGraph>(capture(stream_, [&](Stream& stream) {
      for (int i = 0; i < r.runs; ++i)
        r.copies[static_cast<std::size_t>(i % r.result.copies)]->launch(stream, 0);
    }));
  }

  // All runs of all plans beside each other; what they have more of cores multiplies in each.
  void check() {
    report("checking", 0.6);
    const std::size_t runs = runners_.size() * kSeeds;
    const int threads = std::max(1, options_.workers.threads / static_cast<int>(runs));
    std::vector<std::future<void>> checks;
    for (std::size_t i = 0; i < runs; ++i)
      checks.push_back(std::async(std::launch::async, [&, i] {
        Runner& r = runners_[i / kSeeds];
        const std::size_t at = i % kSeeds;
        SeedRun& run = r.result.evidence.seeds[at];
        run.check = check_results(
            *r.plan, r.inputs[at],
            [&](TensorId id) -> const executor::Storage& { return r.results[at]->at(id); },
            run.seed, threads);
      }));
    for (std::future<void>& check : checks) check.get();
    for (Runner& r : runners_) std::ranges::reverse(r.result.evidence.seeds);
  }

  void time() {
    report("timing", 0.8);
    for (int round = 0; round < options_.rounds; ++round)
      for (std::size_t i = 0; i < runners_.size(); ++i) {
        Runner& r = runners_[round % 2 == 0 ? i : runners_.size() - 1 - i];
        std::this_thread::sleep_for(kProgramRest);
        monitor_.start();
        const auto times = replay_times(device_, stream_, *r.graph, kProgramWarmUps,
                                        options_.replays, "timing replays of programs");
        r.states.push_back(monitor_.stop());
        for (const Seconds t : times) r.times.push_back(t * (1.0 / r.runs));
      }
    for (Runner& r : runners_) {
      r.result.time = spread_of(r.times);
      r.result.state = merged(r.states);
      r.result.evidence.least = r.result.time.least;
    }
  }

  void look_again(Runner& r) {
    const std::uint64_t wanted = r.result.evidence.seeds.front().bits;
    r.result.evidence.stored_while_timed = std::ranges::all_of(r.copies, [&](const auto& copy) {
      return fingerprint(stored_in(r, *copy), options_.workers) == wanted;
    });
  }

  // Each kernel's time in the graph, and its bytes.
  void time_kernels(Runner& r) {
    report("kernels", 0.9);
    BlockOnGpu& copy = *r.copies.front();
    const auto others = [&](Stream& stream) {
      for (std::size_t i = 1; i < r.copies.size(); ++i) r.copies[i]->launch(stream, 0);
    };
    if (instruments_.profiler() != nullptr) {
      const CountedBlock counted = count_kernels(*instruments_.profiler(), stream_, copy, others);
      r.result.kernels = counted.kernels;
      r.result.hbm_read = Bytes(0);
      r.result.hbm_write = Bytes(0);
      for (const MeasuredKernel& k : counted.kernels) {
        *r.result.hbm_read += k.hbm_read;
        *r.result.hbm_write += k.hbm_write;
      }
    } else {
      for (const PreparedKernel& k : copy.kernels()) {
        MeasuredKernel m;
        m.site = k.name;
        m.recorded_kind = k.kind;
        r.result.kernels.push_back(std::move(m));
      }
    }
    // Something runs before the first kernel, or that one's time would hold the graph's start too.
    const auto before = [&](Stream& stream) {
      others(stream);
      if (r.copies.size() == 1) copy.launch(stream, 0);
    };
    std::vector<std::function<void(Stream&)>> parts;
    for (PreparedKernel& k : copy.kernels())
      parts.emplace_back([&k](Stream& stream) {
        for (const auto& launch : k.launches) launch->launch(stream);
      });
    const auto times =
        part_times(device_, stream_, before, parts, options_.replays, r.result.time.median);
    for (std::size_t i = 0; i < times.size(); ++i) r.result.kernels[i].time_in_graph = times[i];
  }

  const Gpu& described_;
  const ProgramMeasureOptions& options_;
  Device device_;
  KernelStore store_, cheating_store_;
  Stream stream_;
  GpuMonitor monitor_;
  Instruments instruments_;
  std::vector<executor::Inputs> seeds_;
  std::vector<Runner> runners_;
  Clock::time_point stage_{};  // when it began
  ProgramMeasurement out_;
};

}  // namespace

ProgramMeasurement measure_programs(const Plan& programs, const Plan* unfused, const Gpu& described,
                                    const ProgramMeasureOptions& options) {
  refuse_changed_inputs(programs);
  return MeasuringPrograms(programs, unfused, described, options).run();
}

}  // namespace fuseline::cuda

#else

#include "base/error.h"
#include "cuda/run/measure_programs.h"

namespace fuseline::cuda {

ProgramMeasurement measure_programs(const Plan&, const Plan*, const Gpu&,
                                    const ProgramMeasureOptions&) {
  throw MissingError(
      "this fuseline was built without the CUDA toolkit: install CUDA 12 or 13 (Ampere and Hopper) "
      "or Debian's nvidia-cuda-toolkit (Ampere) and build again");
}

}  // namespace fuseline::cuda

#endif
