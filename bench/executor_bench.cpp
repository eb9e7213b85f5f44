// The executor's GEMM kernels (widening, products tile by tile, epilogues, rounding) against
// OpenBLAS's own sgemm on the same shapes and threads, alternating in one run. Goal: `ratio` at
// least 0.6 for a LLaMA-2-7B block of 2,048 tokens, forward, under coda.
//   FUSELINE_BENCH_TOKENS=2048 build/release/bench/executor_bench
// FUSELINE_BENCH_MODEL names another model.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/executor/blas.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"

namespace {

using namespace fuseline;
using namespace fuseline::executor;

std::int64_t tokens() {
  const char* text = std::getenv("FUSELINE_BENCH_TOKENS");
  return text == nullptr ? 256 : std::strtoll(text, nullptr, 10);
}

std::string model_name() {
  const char* text = std::getenv("FUSELINE_BENCH_MODEL");
  return text == nullptr ? "llama2-7b" : text;
}

double seconds_of_sgemm(const GemmMainloop& m, int threads) {
  const std::vector<float> a(static_cast<std::size_t>(m.M * m.K), 0.5F);
  const std::vector<float> b(static_cast<std::size_t>(m.N * m.K), 0.25F);
  std::vector<float> c(static_cast<std::size_t>(m.M * m.N));
  use_blas_threads(threads);
  const auto start = std::chrono::steady_clock::now();
  multiply({a.data(), m.K, false}, {b.data(), m.K, false}, m.M, m.N, m.K, 0.0F, c.data(), m.N);
  const auto end = std::chrono::steady_clock::now();
  use_blas_threads(1);
  benchmark::DoNotOptimize(c.data());
  return std::chrono::duration<double>(end - start).count();
}

void BM_ExecutorAgainstSgemm(benchmark::State& state, Phase phase) {
  const ModelConfig config = load_model(model_name());
  const Workload work{.phase = phase, .batch = 1, .seq = tokens()};
  const Gpu gpu = load_gpu("h200");
  ExecuteOptions options;
  options.workers.threads = available_threads();
  const Plan plan = make_plan("coda", config, work);
  const Graph block = build_block(config, work);
  const Inputs inputs =
      prepare_inputs(plan, random_storage(block, 1, options.workers), 1, options.workers);

  double flops = 0;
  double own = 0;
  double library = 0;
  for (auto _ : state) {
    const Execution e = execute(plan, inputs, gpu, options);
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
      const auto* m = std::get_if<GemmMainloop>(&plan.kernels[k].phases[0].mainloop);
      if (m == nullptr) continue;
      flops +=
          2.0 * static_cast<double>(m->M) * static_cast<double>(m->N) * static_cast<double>(m->K);
      own += e.kernels[k].time.value();
      library += seconds_of_sgemm(*m, options.workers.threads);
    }
  }
  state.counters["executor_gflops"] = flops / own * 1e-9;
  state.counters["sgemm_gflops"] = flops / library * 1e-9;
  state.counters["ratio"] = library / own;
  state.SetLabel(model_name() + ", " + std::to_string(tokens()) + " tokens, " +
                 std::to_string(options.workers.threads) + " threads");
}

BENCHMARK_CAPTURE(BM_ExecutorAgainstSgemm, forward, Phase::forward)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2);
BENCHMARK_CAPTURE(BM_ExecutorAgainstSgemm, train, Phase::train)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2);

}  // namespace
