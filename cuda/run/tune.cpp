#if FUSELINE_HAS_CUDA

#include "cuda/run/tune.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "cuda/emit/plan_source.h"
#include "cuda/run/gemm_launch.h"
#include "cuda/run/tile_kernels.h"
#include "cuda/run/timing.h"

namespace fuseline::cuda {

namespace {

constexpr int kRounds = 5;
constexpr int kReplays = 4;  // of a round

// Launches of a graph draw on the power limit; a rest between them keeps the clocks up.
constexpr std::chrono::milliseconds kTuningRest{20};

// A tile with its launches and times.
struct Candidate {
  TileKernel kernel;
  Launches launches{};
  std::vector<Seconds> times{};
};

}  // namespace

std::vector<TunedGemm> tune_gemms(const Device& device, KernelStore& store, const Plan& plan,
                                  BlockOnGpu& block, const Gpu& described,
                                  const PrepareOptions& options,
                                  const std::function<void(const std::string&)>& before) {
  std::vector<TunedGemm> result;
  Stream stream = device.stream();
  for (std::size_t index = 0; index < plan.kernels.size(); ++index) {
    const Kernel& kernel = plan.kernels[index];
    const Program& program = kernel.phases.front();
    const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
    if (gemm == nullptr || kernel.phases.size() != 1 ||
        (options.library != nullptr && kernel.implementation == Implementation::library_gemm))
      continue;
    before(kernel.name);
    TunedGemm tuned{.kernel = kernel.name, .M = gemm->M, .N = gemm->N, .K = gemm->K};
    tuned.chosen = own_tile(plan, program, described);
    std::vector<Candidate> all;
    std::vector<Source> sources;
    for (TileKernel& k : tile_kernels(plan, program, described, store.target())) {
      sources.push_back(k.source.source);
      all.push_back({.kernel = std::move(k)});
    }
    store.compile_ahead(sources, options.threads);
    // The kernels after it and those before it run first, so that the caches are as in a block.
    const auto others = [&](Stream& s) {
      for (std::size_t i = 1; i < plan.kernels.size(); ++i)
        for (const auto& launch : block.kernels()[(index + i) % plan.kernels.size()].launches)
          launch->launch(s);
    };
    for (Candidate& c : all) {
      c.launches = prepare_gemm({device, store, plan, block.tensors()}, c.kernel.source, program);
      for (const auto& launch : c.launches) launch->launch(stream);
      stream.synchronize(c.kernel.name);
    }
    for (int round = 0; round < kRounds; ++round) {
      for (Candidate& c : all) {
        std::this_thread::sleep_for(kTuningRest);
        const auto run = [&c](Stream& s) {
          for (const auto& launch : c.launches) launch->launch(s);
        };
        c.times.push_back(marked_time(device, stream, others, run, kReplays));
      }
    }
    tuned.chosen_time = tuned.best_time = spread_of(all.front().times).median;
    tuned.best = tuned.chosen;
    for (const Candidate& c : all) {
      const Seconds time = spread_of(c.times).median;
      tuned.tried.emplace_back(c.kernel.tile, time);
      if (time < tuned.best_time) {
        tuned.best_time = time;
        tuned.best = c.kernel.tile;
      }
    }
    result.push_back(std::move(tuned));
  }
  return result;
}

}  // namespace fuseline::cuda

#endif
