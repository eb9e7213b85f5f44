// How long predictions of a LLaMA-2-7B block take, 2,048 tokens, on an H200.
//   BM_TenPolicies       ten policies of the block from nothing, plans included; goal: 30 ms
//   BM_OneKernelChanged  a plan that differs in one kernel from one just estimated; goal: 1 ms
//   BM_Hierarchy         one policy, nothing remembered; goal: 50 ms
//   BM_SameAgain         the same, when it was just estimated
//   BM_Roofline          goal: 100 us
//   build/release/bench/predict_bench --benchmark_filter='TenPolicies|OneKernel'
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/custom_fusion.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/walk_memo.h"

namespace {

using namespace fuseline;

const char* const kPolicies[] = {"unfused", "eager", "torch-compile", "coda", "whole-block"};

Workload workload() {
  return {.phase = Phase::forward, .batch = 1, .seq = 2048, .context = 0, .dtype = Dtype::bf16};
}

void predict(benchmark::State& state, Fidelity fidelity, bool remember) {
  const std::string policy = kPolicies[state.range(0)];
  const Plan plan = make_plan(policy, load_model("llama2-7b"), workload());
  const Gpu gpu = load_gpu("h200");
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(plan, gpu, fidelity, {.remember = remember}));
  state.SetLabel(policy);
}

void BM_Hierarchy(benchmark::State& state) { predict(state, Fidelity::hierarchy, false); }
void BM_SameAgain(benchmark::State& state) { predict(state, Fidelity::hierarchy, true); }
void BM_Roofline(benchmark::State& state) { predict(state, Fidelity::roofline, false); }

void BM_TenPolicies(benchmark::State& state) {
  const ModelConfig config = load_model("llama2-7b");
  const Gpu gpu = load_gpu("h200");
  for (auto _ : state) {
    state.PauseTiming();
    WalkMemo::shared().forget();
    state.ResumeTiming();
    for (const PolicyInfo& policy : policies()) {
      const Plan plan = make_plan(policy.name, config, workload(), plan_target(gpu));
      benchmark::DoNotOptimize(simulate(plan, gpu, Fidelity::hierarchy));
    }
  }
}

// Choices like those of torch-compile, and the same but for one edge, which is no longer on chip.
void BM_OneKernelChanged(benchmark::State& state) {
  const ModelConfig config = load_model("llama2-7b");
  const Gpu gpu = load_gpu("h200");
  const Graph block = build_block(config, workload());
  const Target target = plan_target(gpu);
  const CustomFusion before = custom_like(make_plan("torch-compile", block, target), block);
  CustomFusion after = before;
  const auto edge =
      after.on_chip.begin() + state.range(0) % static_cast<std::int64_t>(after.on_chip.size());
  state.SetLabel("without " + edge_text(*edge));
  after.on_chip.erase(edge);
  const Plan one = make_plan(kCustomPolicy, config, workload(), before, target);
  const Plan other = make_plan(kCustomPolicy, config, workload(), after, target);
  for (auto _ : state) {
    state.PauseTiming();
    WalkMemo::shared().forget();
    benchmark::DoNotOptimize(simulate(one, gpu, Fidelity::hierarchy));
    state.ResumeTiming();
    benchmark::DoNotOptimize(simulate(other, gpu, Fidelity::hierarchy));
  }
}

void BM_MakePlan(benchmark::State& state) {
  const std::string policy = kPolicies[state.range(0)];
  const ModelConfig config = load_model("llama2-7b");
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(policy, config, workload()));
  state.SetLabel(policy);
}

BENCHMARK(BM_TenPolicies)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_OneKernelChanged)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SameAgain)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Hierarchy)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Roofline)->DenseRange(0, 4)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_MakePlan)->DenseRange(0, 4)->Unit(benchmark::kMicrosecond);

}  // namespace
