// The weights of a model of L blocks and its ends, as they are trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/graph.h"

namespace fuseline::training {

// Where in the model a graph of the forward and backward pass lies.
inline constexpr std::int64_t kEntry = -1;
inline constexpr std::int64_t kExit = -2;

// One weight: a tensor of the entry, of block `layer`, or of the exit.
struct Parameter {
  std::int64_t layer = 0;
  std::string tensor{};  // "w_qkv", "w_embed"
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool decays = false;  // matrices do, norm weights and biases do not

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(rows * cols); }
};

// The graphs of one training step: forward and backward pass of the entry, of one block, and of the
// exit with the loss.
struct ModelGraphs {
  Graph entry;
  Graph block;
  Graph exit;
};
ModelGraphs training_graphs(const ModelConfig& config, const Workload& workload);

// All weights, entry first, then the blocks, then the exit. Tied embeddings: the LM head's matrix
// is the entry's and is not listed again.
std::vector<Parameter> parameters_of(const ModelConfig& config, const ModelGraphs& graphs);

// The index of a graph's weight among the parameters.
std::size_t parameter_of(const std::vector<Parameter>& parameters, std::int64_t layer,
                         const std::string& tensor);

// Elements of every parameter, in the order of the list.
template <class Real>
using Values = std::vector<std::vector<Real>>;

// Norm weights 1, biases 0, matrices normal with standard deviation 0.05, those that end a residual
// branch divided by sqrt(2L), as GPT-2 does, and the LM head's 0.02 for a first loss of about ln V.
Values<float> initial_values(const std::vector<Parameter>& parameters, std::int64_t layers,
                             std::uint64_t seed);

}  // namespace fuseline::training
