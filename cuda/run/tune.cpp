#if FUSELINE_HAS_CUDA

#include "cuda/run/tune.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "cuda/run/gemm_launch.h"
#include "cuda/run/timing.h"
#include "sim/gpu/architecture.h"
#include "sim/kernels/epilogue_needs.h"

namespace fuseline::cuda {

namespace {

constexpr int kRounds = 5;
constexpr int kReplays = 4;  // of a round
constexpr std::int64_t kMostPartsTried = 4;

bool same_config(const GemmConfig& a, const GemmConfig& b) {
  return a.tile_m == b.tile_m && a.tile_n == b.tile_n && a.cluster == b.cluster &&
         a.cluster_k == b.cluster_k && a.tail_parts == b.tail_parts && a.a_rows == b.a_rows &&
         a.schedule == b.schedule && a.turned == b.turned;
}

// Launches of a graph draw on the power limit; a rest between them keeps the clocks up.
constexpr std::chrono::milliseconds kTuningRest{20};

// A tile, the kernel that it becomes, and its times.
struct Candidate {
  GemmTile tile;
  GemmKernelSource source;
  std::string name;
  Launches launches{};
  std::vector<Seconds> times{};
};

std::vector<Candidate> candidates_of(const Plan& plan, const Program& program,
                                     const GemmTile& chosen, SmTarget target) {
  std::vector<GemmTile> tiles = {chosen};
  const EpilogueNeeds needs = epilogue_needs(program);
  const bool hopper = target == SmTarget::sm_90a;
  // The tiles of a mainloop stand in the file of the architecture that it was written for, which is
  // not the GPU's where the other mainloop runs on it.
  const auto written_for = load_architecture(hopper ? "hopper" : "ampere");
  for (const GemmTile& tile : written_for->tiles.own)
    if (!hopper || fits(needs, tile)) {
      tiles.push_back(tile);
      tiles.back().tail_parts = 1;
      for (std::int64_t parts = 2; parts <= std::min(tile.tail_parts, kMostPartsTried); ++parts) {
        tiles.push_back(tile);
        tiles.back().tail_parts = parts;
      }
    }
  std::vector<Candidate> found;
  for (const GemmTile& tile : tiles) {
    Candidate c{.tile = tile,
                .source = gemm_kernel_source(plan.graph, program, tile, target, plan.policy),
                .name = {}};
    const bool known = std::ranges::any_of(found, [&](const Candidate& other) {
      return same_config(other.source.config, c.source.config);
    });
    const GemmConfig& config = c.source.config;
    c.name = fmt::format("{}, {}tile {} x {}, cluster {}, {} parts", program.name,
                         config.turned ? "turned " : "", config.tile_m, config.tile_n,
                         config.cluster * config.cluster_k, config.tail_parts);
    if (!known) found.push_back(std::move(c));
  }
  return found;
}

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
    std::vector<Candidate> all = candidates_of(plan, program, tuned.chosen, store.target());
    std::vector<Source> sources;
    for (const Candidate& c : all) sources.push_back(c.source.source);
    store.compile_ahead(sources, options.threads);
    // The kernels after it and those before it run first, so that the caches are as in a block.
    const auto others = [&](Stream& s) {
      for (std::size_t i = 1; i < plan.kernels.size(); ++i)
        for (const auto& launch : block.kernels()[(index + i) % plan.kernels.size()].launches)
          launch->launch(s);
    };
    for (Candidate& c : all) {
      c.launches = prepare_gemm({device, store, plan, block.tensors()}, c.source, program);
      for (const auto& launch : c.launches) launch->launch(stream);
      stream.synchronize(c.name);
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
      tuned.tried.emplace_back(c.tile, time);
      if (time < tuned.best_time) {
        tuned.best_time = time;
        tuned.best = c.tile;
      }
    }
    result.push_back(std::move(tuned));
  }
  return result;
}

}  // namespace fuseline::cuda

#endif
