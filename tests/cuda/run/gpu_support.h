// Kernels on the GPU of this machine against the executor, over small blocks. Skipped, with the
// reason, where there is no GPU.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/run/kernel_check.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "tests/model/plan_support.h"

namespace fuseline::test {

using cuda::CubinCache;
using cuda::Device;
using cuda::GpuTensors;
using cuda::KernelStore;
using cuda::LaunchContext;
using cuda::SmTarget;

// Odd sizes, grouped queries, heads of 32 columns.
inline ModelConfig small_llama() {
  ModelConfig c = tiny_llama();
  c.D = 192;
  c.F = 272;
  c.H = 6;
  c.Hkv = 2;
  c.d = 32;
  return c;
}

// Biases; heads of 40 columns, so that K of a product over heads ends inside a step.
inline ModelConfig small_gpt() {
  ModelConfig c = tiny_gpt();
  c.D = 200;
  c.F = 328;
  c.H = c.Hkv = 5;
  c.d = 40;
  c.max_positions = 160;
  return c;
}

// Row by row.
inline std::vector<float> numbers_of(const executor::Storage& y) {
  std::vector<float> numbers(static_cast<std::size_t>(y.rows() * y.cols()));
  for (std::int64_t row = 0; row < y.rows(); ++row)
    y.read(row, 0, y.cols(), numbers.data() + row * y.cols());
  return numbers;
}

// An executed plan, and its tensors on the GPU.
struct ExecutedPlan {
  Plan plan;
  executor::Execution execution;
  GpuTensors tensors;  // refer to the plan

  ExecutedPlan(const Device& device, Plan p, executor::Execution done)
      : plan(std::move(p)), execution(std::move(done)), tensors(device, plan) {}
};

class GpuKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.emplace();
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  // Whether the GPU runs the target's kernels; the test is skipped where it does not.
  bool use(SmTarget target) {
    if (!device_) return false;
    try {
      store_.emplace(*device_, CubinCache::standard(), target);
    } catch (const MissingError& error) {
      [&] { GTEST_SKIP() << error.what(); }();
      return false;
    }
    return true;
  }

  // The plan of each policy whose kernels run one after the other.
  static void for_each_plan(const ModelConfig& config, const Workload& work,
                            const std::function<void(Plan)>& use) {
    const Graph block = build_block(config, work);
    for (const PolicyInfo& policy : policies()) {
      if (policy.name == "custom" || policy.name == "whole-block") continue;
      if (work.phase == Phase::train && !policy.trains) continue;
      SCOPED_TRACE(policy.name + " " + config.name);
      use(make_plan(policy.name, block));
    }
  }

  // Programs with the same text, which other policies have too, are checked once.
  void for_each_program(const ModelConfig& config, const Workload& work,
                        const std::function<void(ExecutedPlan&, const Program&)>& check) {
    const executor::Workers workers;
    const Graph block = build_block(config, work);
    std::set<std::string> seen;
    for_each_plan(config, work, [&](Plan plan) {
      const auto inputs =
          executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
      auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
      ExecutedPlan executed(*device_, std::move(plan), std::move(done));
      for (const Kernel& kernel : executed.plan.kernels)
        for (const Program& program : kernel.phases)
          if (seen.insert(print_program(executed.plan.graph, program)).second) {
            SCOPED_TRACE(program.name);
            check(executed, program);
          }
    });
  }

  LaunchContext context(const ExecutedPlan& p) { return {*device_, *store_, p.plan, p.tensors}; }

  std::optional<Device> device_;
  std::optional<KernelStore> store_;
};

}  // namespace fuseline::test
