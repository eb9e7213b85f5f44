// softmax(scores) V over key tiles that come one after the other: running maximum, sum and result.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/tile_maths.h"
#include "sim/executor/blas.h"

namespace fuseline::executor {

// Keys [begin, end) of the tile at hand that one query sees; empty: none.
struct SeenKeys {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class OnlineSoftmax {
 public:
  // `width`: of V and of the result.
  void begin(std::int64_t queries, std::int64_t width);
  // One key tile: scores [queries, keys], overwritten; V as [keys, width], contiguous; what each
  // query sees.
  void add(Matrix& scores, const std::vector<float>& values, const std::vector<SeenKeys>& seen);
  // Joins what another one has collected of other keys.
  void join(const OnlineSoftmax& other);
  // Divides by the sums (`normalise` false is a fault). Queries that saw no key become NaN.
  void finish(Matrix& result, bool normalise = true) const;
  // log Σ exp(score) of every query.
  [[nodiscard]] std::vector<float> log_sum_exp() const;

 private:
  std::vector<float> largest_;
  std::vector<float> sums_;
  Matrix result_;
};

}  // namespace fuseline::executor
