// By what a walk through L2 is known again.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/memory/l2_cache.h"

namespace fuseline {

// Everything that decides what a walk touches, in order, but for the names of its tensors.
class WalkKey {
 public:
  enum class Kind : std::uint8_t { gemm, streams, attention };
  void kind(Kind kind) { words_.push_back(static_cast<std::uint64_t>(kind)); }
  void number(std::int64_t value) { words_.push_back(static_cast<std::uint64_t>(value)); }
  void tensor(std::uint32_t id);
  void matrix(const CachedMatrix& m);

  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
  [[nodiscard]] const std::vector<std::uint32_t>& tensors() const { return tensors_; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> tensors_;  // all that it touches, in the order of first mention
};

}  // namespace fuseline
