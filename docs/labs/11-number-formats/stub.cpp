// Lab 11, task 11.8: a product with weights of few bits, as a step of decode needs it.
//
//   y[0, n] = @FACTOR@ * sum over k of x[0, k] * codes[n, k] * scale[n, k / group]
//
// x [1, K], codes [N, K] in 8 bits, scale [N, K/group rounded up], y [1, N]. The last group of a row
// may be shorter. Load every element of x, codes and scale once, and store y once. x fits on chip,
// a row of codes does not fit beside it. The factor is yours: other students have others.
#include <cstdint>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

void multiply(const Source& x, const Source& codes, const Source& scale, const Target& y,
              std::int64_t group) {
  // x.cols() is K, codes.rows() is N
  (void)x, (void)codes, (void)scale, (void)y, (void)group;  // yours to write
}
