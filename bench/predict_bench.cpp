// How long one prediction takes: one policy of a LLaMA-2-7B block, 2,048 tokens, on an H200.
// Goals: hierarchy at most 50 ms, roofline at most 100 us.
#include <benchmark/benchmark.h>

#include <string>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"

namespace {

using namespace fuseline;

const char* const kPolicies[] = {"unfused", "eager", "torch-compile", "coda", "whole-block"};

Workload workload() {
  return {.phase = Phase::forward, .batch = 1, .seq = 2048, .context = 0, .dtype = Dtype::bf16};
}

void predict(benchmark::State& state, Fidelity fidelity) {
  const std::string policy = kPolicies[state.range(0)];
  const Plan plan = make_plan(policy, load_model("llama2-7b"), workload());
  const Gpu gpu = load_gpu("h200");
  for (auto _ : state) benchmark::DoNotOptimize(simulate(plan, gpu, fidelity));
  state.SetLabel(policy);
}

void BM_Hierarchy(benchmark::State& state) { predict(state, Fidelity::hierarchy); }
void BM_Roofline(benchmark::State& state) { predict(state, Fidelity::roofline); }

void BM_MakePlan(benchmark::State& state) {
  const std::string policy = kPolicies[state.range(0)];
  const ModelConfig config = load_model("llama2-7b");
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(policy, config, workload()));
  state.SetLabel(policy);
}

BENCHMARK(BM_Hierarchy)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Roofline)->DenseRange(0, 4)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_MakePlan)->DenseRange(0, 4)->Unit(benchmark::kMicrosecond);

}  // namespace
