// The shipped blocks at small sizes, and the phases, types and number formats in which `verify`
// tries each of them.
#pragma once

#include <string>
#include <vector>

#include "model/config/config.h"

namespace fuseline::executor {

// Sizes for every letter that a shipped block has: several tiles of 128 columns, and rows of every
// product that are whole groups of 128 columns.
ModelConfig small_model(const std::string& block);

struct SmallBlock {
  std::string name;  // of the block, or "mla-dense": with an MLP in the place of experts
  ModelConfig config;
};
// All blocks that stand in layers. Those that may have experts or an MLP come twice.
std::vector<SmallBlock> small_blocks();

struct SmallCase {
  std::string what;  // "decode, weights int4"
  Workload work;
};
// Every phase that the block has, in every storage type; without training also in every format of
// weights, activations and caches. Tokens are such that no tile divides them.
std::vector<SmallCase> cases_of(const SmallBlock& block);

}  // namespace fuseline::executor
