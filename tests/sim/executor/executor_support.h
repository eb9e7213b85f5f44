// What the executor's tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/policy.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "tests/model/plan_support.h"

namespace fuseline::executor {

inline std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  return names;
}

// Read once: many small plans ask for it.
inline const Gpu& executor_gpu() {
  static const Gpu gpu = load_gpu("h200");
  return gpu;
}

// A random block's plan and its inputs.
struct RandomCase {
  Graph block;
  Plan plan;
  Inputs inputs;  // of the block
};

inline constexpr std::uint64_t kInputsSeed = 17;

inline RandomCase random_case(const std::string& policy, const test::RandomBlock& b) {
  RandomCase c{build_block(b.config, b.work), make_plan(policy, b.config, b.work), {}};
  c.inputs = random_storage(c.block, kInputsSeed, {});
  return c;
}

inline Execution run(const RandomCase& c, int threads = 1) {
  ExecuteOptions options;
  options.workers.threads = threads;
  options.workers.short_loops_too = true;
  return execute(c.plan, prepare_inputs(c.plan, c.inputs, kInputsSeed, {}), executor_gpu(),
                 options);
}

// The name of a test's parameter: letters and digits only.
inline std::string as_test_name(std::string name) {
  std::erase(name, '-');
  return name;
}

// Tensor → loaded, stored; those without traffic left out.
using ByteCounts = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

inline ByteCounts byte_counts(const Graph& graph, const std::vector<RequestedBytes>& moved) {
  ByteCounts c;
  for (const RequestedBytes& r : moved) {
    if (r.loaded.value() == 0 && r.stored.value() == 0) continue;
    auto& entry = c[graph.tensor(r.tensor).name];
    entry.first += r.loaded.value();
    entry.second += r.stored.value();
  }
  return c;
}

// Bytes tensor by tensor and launches, kernel by kernel, as in the prediction of the hierarchy
// model.
inline void expect_bytes(const PlanEstimate& predicted, const Plan& plan, const Execution& e,
                         const std::string& what) {
  EXPECT_EQ(e.launches, predicted.launches) << what;
  std::size_t k = 0;
  for (const KernelEstimate& kernel : predicted.kernels) {
    if (kernel.requested.empty()) continue;  // a launch that joins splits
    ASSERT_LT(k, e.kernels.size());
    EXPECT_EQ(e.kernels[k].name, kernel.name);
    EXPECT_EQ(byte_counts(plan.graph, e.kernels[k].moved),
              byte_counts(plan.graph, kernel.requested))
        << what << " kernel " << kernel.name;
    ++k;
  }
  EXPECT_EQ(k, e.kernels.size());
}

inline void expect_predicted_bytes(const Plan& plan, const Execution& e, const std::string& what) {
  expect_bytes(simulate(plan, executor_gpu(), Fidelity::hierarchy), plan, e, what);
}

// Every tensor that one execution keeps has the same bits in the other.
inline void expect_same_bits(const Plan& plan, const Execution& a, const Execution& b,
                             const std::string& what) {
  for (std::size_t t = 0; t < plan.graph.tensors().size(); ++t) {
    const TensorId id{static_cast<std::int32_t>(t)};
    if (!a.memory->has(id)) continue;
    const Storage& x = a.memory->at(id);
    const Storage& y = b.memory->at(id);
    EXPECT_TRUE(std::equal(x.at(0, 0), x.at(0, 0) + x.bytes().value(), y.at(0, 0)))
        << plan.graph.tensor(id).name << ' ' << what;
  }
}

}  // namespace fuseline::executor
