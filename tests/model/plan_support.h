// Plans for tests: every policy over small random blocks.
#pragma once

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/policy.h"
#include "tests/model/tiny_models.h"

namespace fuseline {

// Parameters of tests by what they say, not by their bytes.
inline void PrintTo(const Workload& w, std::ostream* out) {
  *out << name_of(w.phase) << " of " << w.batch << " x " << w.seq;
  if (w.phase == Phase::decode) *out << " against " << w.context;
}

}  // namespace fuseline

namespace fuseline::test {

struct RandomBlock {
  ModelConfig config;
  Workload work;
};

// Widths sometimes beyond one partial tile of 128 columns.
inline RandomBlock random_block(std::mt19937& random) {
  RandomBlock b{random_model(random), random_work(random)};
  if (random() % 3 == 0) b.config.D = pick(random, 129, 300);
  return b;
}

// The same kind of block with its backward pass.
inline RandomBlock random_training_block(std::mt19937& random) {
  RandomBlock b = random_block(random);
  b.work = train(b.work.batch, b.work.seq);
  return b;
}

// The policies that plan a backward pass.
inline std::vector<std::string> training_policies() {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies())
    if (p.trains) names.push_back(p.name);
  return names;
}

inline std::string describe(const RandomBlock& b) {
  return b.config.name + " D " + std::to_string(b.config.D) + " F " + std::to_string(b.config.F) +
         " H " + std::to_string(b.config.H) + "/" + std::to_string(b.config.Hkv) + " d " +
         std::to_string(b.config.d) + " B " + std::to_string(b.work.batch) + " T " +
         std::to_string(b.work.seq) + " S " + std::to_string(b.work.kv_tokens()) + " " +
         name_of(b.work.phase);
}

inline std::vector<std::string> kernel_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Kernel& k : plan.kernels) names.push_back(k.name);
  return names;
}

inline const Kernel* find_kernel(const Plan& plan, const std::string& name) {
  const auto it = std::ranges::find(plan.kernels, name, &Kernel::name);
  return it == plan.kernels.end() ? nullptr : &*it;
}

}  // namespace fuseline::test
