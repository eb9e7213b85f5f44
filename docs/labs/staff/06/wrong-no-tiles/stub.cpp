#include <cstdint>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

// Three loops over memory.
void gemm(const Source& a, const Source& b, const Target& c, std::int64_t /*tile_m*/,
          std::int64_t /*tile_n*/, std::int64_t /*tile_k*/) {
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < b.rows(); ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < a.cols(); ++k) sum += a.load(i, k) * b.load(j, k);
      c.store(i, j, sum);
    }
  }
}
