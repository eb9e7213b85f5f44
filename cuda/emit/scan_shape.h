// How a scan is laid over threads: the constants of its kernel (cuda/kernels/scan/walk.cuh).
#pragma once

#include <cstdint>

#include "model/program.h"

namespace fuseline::cuda {

struct ScanLayout {
  int threads = 128;
  int lanes = 1;     // threads that share the state of a column
  int numbers = 8;   // of that state in each of them
  int columns = 1;   // of a thread, all of one head
  int groups = 1;    // of k and q that the columns of a thread block may belong to
  int tokens = 64;   // of a chunk
  int together = 4;  // tokens whose sums over lanes are found together
  int units = 2;     // tokens that the body takes at once
  friend bool operator==(const ScanLayout&, const ScanLayout&) = default;

  [[nodiscard]] std::int64_t cols() const { return threads / lanes * columns; }
  // Of the operands of a chunk, in fp32.
  [[nodiscard]] std::int64_t shared_bytes() const;
};

// 32 lanes with 32 numbers each.
constexpr std::int64_t widest_state = 1024;

// InternalError: a state is wider than widest_state.
ScanLayout scan_layout(const ScanMainloop& scan);

// Thread blocks of a launch.
std::int64_t scan_blocks(const ScanMainloop& scan, const ScanLayout& layout);

}  // namespace fuseline::cuda
