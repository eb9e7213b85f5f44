// What can be changed in our Hopper GEMM to find out by measuring where its time goes. Nothing here
// is what users get: a variant that wins becomes the rule, or goes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fuseline::cuda {

struct GemmVariant {
  std::string name{};  // empty: as it is shipped
  std::string what{};
  std::optional<int> l2_promotion{};  // of the operands' maps: bytes that L2 fetches at once
  bool half_boxes = false;            // operands in boxes of 32 columns, in the 64-byte swizzle
  bool store_by_threads = false;      // and not by the copy engine
  int cluster = 2;                    // thread blocks that share an operand, where two do
};

// "promotion-128", "half-boxes", ...
const std::vector<GemmVariant>& gemm_variants();

// Names with commas between them, or "all". InputError, of option `option`: with the nearest name.
std::vector<GemmVariant> parse_gemm_variants(const std::string& option, const std::string& names);

}  // namespace fuseline::cuda
