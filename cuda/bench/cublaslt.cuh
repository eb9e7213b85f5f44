// The rival: cuBLASLt, y = x wᵀ, the fastest of its heuristics' proposals for each problem.
#pragma once

#include <cublasLt.h>

#include "support.cuh"

namespace fuseline::bench {

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": cuBLAS error " + std::to_string(status));
}

class CublasLt {
 public:
  CublasLt() : workspace_(std::size_t{64} << 20) { FUSELINE_CUDA(cublasLtCreate(&handle_)); }
  ~CublasLt() { cublasLtDestroy(handle_); }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // Row-major y[M, N] = a[M, K] b[N, K]^T is column-major y^T = b a^T.
  // a_is_km, b_is_kn: stored transposed.
  template <class T>
  void plan(int M, int N, int K, bool a_is_km, bool b_is_kn, const T* a, const T* b, T* y) {
    const cudaDataType_t type = std::is_same_v<T, __half> ? CUDA_R_16F : CUDA_R_16BF;
    FUSELINE_CUDA(cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t op_b = b_is_kn ? CUBLAS_OP_N : CUBLAS_OP_T;
    const cublasOperation_t op_a = a_is_km ? CUBLAS_OP_T : CUBLAS_OP_N;
    FUSELINE_CUDA(
        cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b));
    FUSELINE_CUDA(
        cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a));
    const auto layout = [&](cublasLtMatrixLayout_t* out, int rows, int cols) {
      FUSELINE_CUDA(cublasLtMatrixLayoutCreate(out, type, static_cast<std::uint64_t>(rows),
                                               static_cast<std::uint64_t>(cols), rows));
    };
    layout(&b_, b_is_kn ? N : K, b_is_kn ? K : N);
    layout(&a_, a_is_km ? M : K, a_is_km ? K : M);
    layout(&y_, N, M);
    cublasLtMatmulPreference_t preference;
    FUSELINE_CUDA(cublasLtMatmulPreferenceCreate(&preference));
    const std::size_t bytes = workspace_.size();
    FUSELINE_CUDA(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    cublasLtMatmulHeuristicResult_t found[16];
    int count = 0;
    FUSELINE_CUDA(cublasLtMatmulAlgoGetHeuristic(handle_, desc_, b_, a_, y_, y_, preference, 16,
                                                 found, &count));
    cublasLtMatmulPreferenceDestroy(preference);
    std::vector<Contender> candidates;
    for (int i = 0; i < count; ++i)
      candidates.push_back({std::to_string(i), [&, i](int, cudaStream_t stream) {
                              algorithm_ = found[i].algo;
                              run(a, b, y, stream);
                            }});
    time_alternating(candidates, 1, 4, 5);
    double best = 1e30;
    for (int i = 0; i < count; ++i) {
      const double t = median(candidates[static_cast<std::size_t>(i)].times_us);
      if (t < best) {
        best = t;
        algorithm_ = found[i].algo;
      }
    }
  }

  template <class T>
  void run(const T* a, const T* b, T* y, cudaStream_t stream) {
    const float one = 1;
    const float zero = 0;
    FUSELINE_CUDA(cublasLtMatmul(handle_, desc_, &one, b, b_, a, a_, &zero, y, y_, y, y_,
                                 &algorithm_, workspace_.data(), workspace_.size(), stream));
  }

 private:
  cublasLtHandle_t handle_{};
  cublasLtMatmulDesc_t desc_{};
  cublasLtMatrixLayout_t a_{}, b_{}, y_{};
  cublasLtMatmulAlgo_t algorithm_{};
  Buffer<char> workspace_;
};

}  // namespace fuseline::bench
