#include "cuda/emit/gemm_variant.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace fuseline::cuda {

const std::vector<GemmVariant>& gemm_variants() {
  static const std::vector<GemmVariant> all = {
      {.name = "promotion-256",
       .what = "L2 fetches 256 bytes of the operands at once, whatever their rows and readers",
       .l2_promotion = 256},
      {.name = "promotion-128",
       .what = "L2 fetches 128 bytes of the operands at once",
       .l2_promotion = 128},
      {.name = "promotion-none",
       .what = "L2 fetches the sectors of the operands that are asked for",
       .l2_promotion = 0},
      {.name = "half-boxes",
       .what = "a step of K comes in two boxes of 64 bytes a row, and not in one of 128",
       .half_boxes = true},
      {.name = "store-by-threads",
       .what = "threads store the result, 16 bytes each, and not the copy engine",
       .store_by_threads = true},
      {.name = "cluster-4",
       .what = "four thread blocks share an operand, and not two",
       .cluster = 4},
  };
  return all;
}

std::vector<GemmVariant> parse_gemm_variants(const std::string& option, const std::string& names) {
  if (names == "all") return gemm_variants();
  std::vector<std::string> known;
  for (const GemmVariant& v : gemm_variants()) known.push_back(v.name);
  std::vector<GemmVariant> wanted;
  std::istringstream text(names);
  for (std::string name; std::getline(text, name, ',');) {
    const auto found = std::ranges::find(gemm_variants(), name, &GemmVariant::name);
    if (found == gemm_variants().end())
      throw InputError({.file = "command line",
                        .field = option,
                        .value = name,
                        .message = "is no variant of our GEMM",
                        .allowed = fmt::format("all, or some of {}", fmt::join(known, ", ")),
                        .nearest = nearest_name(name, known)});
    if (std::ranges::find(wanted, name, &GemmVariant::name) == wanted.end())
      wanted.push_back(*found);
  }
  if (wanted.empty())
    throw InputError({.file = "command line",
                      .field = option,
                      .value = names,
                      .message = "names no variant",
                      .allowed = fmt::format("all, or some of {}", fmt::join(known, ", "))});
  return wanted;
}

}  // namespace fuseline::cuda
