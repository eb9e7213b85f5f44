// Matrix products by OpenBLAS.
#pragma once

#include <cstdint>

namespace fuseline::executor {

// Threads of every OpenBLAS call of this process from now on. The executor uses 1: its tiles run in
// parallel.
void use_blas_threads(int count);

// One operand in memory. `transposed`: stored [K, M] (a), [K, N] (b).
template <class Element>
struct BlasPanel {
  const Element* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

// c[M,N] = a[M,K] b[N,K]^T + keep·c
void multiply(const BlasPanel<float>& a, const BlasPanel<float>& b, std::int64_t M, std::int64_t N,
              std::int64_t K, float keep, float* c, std::int64_t stride);
void multiply(const BlasPanel<double>& a, const BlasPanel<double>& b, std::int64_t M,
              std::int64_t N, std::int64_t K, double keep, double* c, std::int64_t stride);

}  // namespace fuseline::executor
