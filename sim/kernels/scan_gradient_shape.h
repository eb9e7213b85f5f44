// How the gradient of a scan is laid over threads: the constants of its kernel
// (cuda/kernels/scan/gradient.cuh).
#pragma once

#include <cstdint>
#include <optional>

#include "model/program.h"

namespace fuseline {

// Tokens whose operands lie in shared memory together.
constexpr std::int64_t scan_segment_tokens = 16;

struct ScanGradientLayout {
  int threads = 128;
  int lanes = 1;     // threads that share the states of their columns
  int numbers = 4;   // of each state in a thread
  int columns = 1;   // of a thread, all of one head
  int heads = 1;     // of a thread block
  int together = 4;  // tokens whose states a thread keeps
  int units = 2;     // tokens that the body takes at once

  [[nodiscard]] std::int64_t shared_bytes() const;
  // Numbers of the states that one thread block keeps ahead of a segment.
  [[nodiscard]] std::int64_t state_numbers() const {
    return std::int64_t{threads} * columns * numbers;
  }
};

// Nothing where no thread block has whole heads: their state is too large, or heads that share keys
// have columns that do not begin at whole vectors.
std::optional<ScanGradientLayout> scan_gradient_layout(const ScanMainloop& scan);

// Segments of the longest piece.
std::int64_t scan_segments(const ScanMainloop& scan);

// Thread blocks of a launch.
std::int64_t scan_gradient_blocks(const ScanMainloop& scan, const ScanGradientLayout& layout);

}  // namespace fuseline
