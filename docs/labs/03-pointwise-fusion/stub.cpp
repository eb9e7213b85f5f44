// Lab 3, task 3.9: residual addition and RMSNorm in one pass over memory.
//
//   sum[i, j]    = x[i, j] + @FACTOR@ * branch[i, j]
//   normed[i, j] = sum[i, j] / sqrt(mean over j of sum[i, j]^2 + eps) * weight[0, j]
//
// Load every element of x and branch once, the weight at most once per row, and store every element
// of sum and normed once. A row fits on chip. The factor is yours: other students have others.
#include <cmath>
#include <cstdint>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

void add_rms_norm(const Source& x, const Source& branch, const Source& weight, const Target& sum,
                  const Target& normed, float eps) {
  // x.rows(), x.cols(); x.load(i, j); sum.store(i, j, value)
  (void)x, (void)branch, (void)weight, (void)sum, (void)normed, (void)eps;  // yours to write
}
