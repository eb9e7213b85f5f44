// What a GPU computed, against fp64 on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/reference.h"
#include "sim/executor/comparison.h"
#include "sim/executor/inputs.h"

namespace fuseline::cuda {

// Inputs of a block, and its fp64 reference.
class BlockCheck {
 public:
  BlockCheck(const ModelConfig& config, const Workload& workload, std::uint64_t seed,
             const executor::Workers& workers);

  // What a plan of the block is given.
  [[nodiscard]] executor::Inputs inputs_of(const Plan& plan) const;

  // Computes the reference, if nobody did. Takes as long as the host needs for the block in fp64.
  void compute_reference();
  // The unfused plan's results, by whose errors others are judged.
  void set_baseline(const Plan& unfused, const executor::Memory& memory);
  [[nodiscard]] std::vector<executor::ComparedTensor> judge(const Plan& plan,
                                                            const executor::Memory& memory,
                                                            const executor::Inputs& inputs) const;

 private:
  std::unique_ptr<const Graph> block_;  // the comparison refers to it
  std::uint64_t seed_;
  executor::Workers workers_;
  executor::Inputs inputs_;
  std::unique_ptr<TensorValues> reference_;
  std::unique_ptr<executor::Comparison> comparison_;
  executor::Baseline baseline_;
};

// The name of the first tensor that the plan stores with a NaN or infinity in it; empty: none.
std::string first_not_finite(const Plan& plan, const executor::Memory& memory,
                             const executor::Workers& workers);

// Of the bits of tensors.
std::uint64_t fingerprint(const std::vector<executor::Storage>& tensors,
                          const executor::Workers& workers);
// Whether all their values are finite.
bool all_finite(const std::vector<executor::Storage>& tensors, const executor::Workers& workers);

// `workload` with fewer tokens, then sequences, until the block has at most `most` FLOPs.
Workload shrunk(const ModelConfig& config, const Workload& workload, double most);

}  // namespace fuseline::cuda
