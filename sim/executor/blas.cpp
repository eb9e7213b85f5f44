#include "sim/executor/blas.h"

#include <cblas.h>

namespace fuseline::executor {

namespace {

CBLAS_TRANSPOSE turned(bool yes) { return yes ? CblasTrans : CblasNoTrans; }

blasint size(std::int64_t n) { return static_cast<blasint>(n); }

}  // namespace

void use_blas_threads(int count) { openblas_set_num_threads(count); }

void multiply(const BlasPanel<float>& a, const BlasPanel<float>& b, std::int64_t M, std::int64_t N,
              std::int64_t K, float keep, float* c, std::int64_t stride) {
  cblas_sgemm(CblasRowMajor, turned(a.transposed), turned(!b.transposed), size(M), size(N), size(K),
              1.0F, a.data, size(a.stride), b.data, size(b.stride), keep, c, size(stride));
}

void multiply(const BlasPanel<double>& a, const BlasPanel<double>& b, std::int64_t M,
              std::int64_t N, std::int64_t K, double keep, double* c, std::int64_t stride) {
  cblas_dgemm(CblasRowMajor, turned(a.transposed), turned(!b.transposed), size(M), size(N), size(K),
              1.0, a.data, size(a.stride), b.data, size(b.stride), keep, c, size(stride));
}

}  // namespace fuseline::executor
