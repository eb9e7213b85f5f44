// One product for the vendor's library, described and given an algorithm. Only files of cuda/vendor
// include this.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cuda/run/gpu_tensors.h"
#include "cuda/vendor/cublaslt_calls.h"
#include "cuda/vendor/cublaslt_gemm.h"

namespace fuseline::cuda {

struct CublasLt::State {
  explicit State(const Device& d) : device(&d), workspace(d.allocate(kWorkspace)) {
    calls.check(calls.create(&handle), "starting");
  }
  ~State() { (void)calls.destroy(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static constexpr Bytes kWorkspace = Bytes(std::int64_t{64} << 20);
  CublasLtCalls calls;
  const Device* device;
  DeviceBuffer workspace;
  cublasLtHandle_t handle = nullptr;
  std::map<std::string, cublasLtMatmulAlgo_t> chosen;  // by problem
};

// The library's matrices are column-major: our row-major y[M, N] = a bᵀ is its yᵀ = b aᵀ, with b
// as its first operand, and row distances are its leading dimensions.
struct VendorMatrix {
  GpuMatrix matrix{};
  bool transposed = false;  // a [K, M], b [K, N]
  std::int64_t stride = 0;  // elements from product to product
  // Bytes that every address used is a multiple of, of all calls that share the description.
  std::uint32_t alignment = 1;
};
struct VendorProblem {
  std::int64_t M = 0, N = 0, K = 0;
  std::int64_t count = 1;
  VendorMatrix a{}, b{}, out{};
  VendorGemm form{};
  std::uint64_t bias = 0, before_gelu = 0;  // addresses; 0: none
  std::int64_t before_gelu_row_bytes = 0;
};

class CublasLtProduct {
 public:
  CublasLtProduct(CublasLt::State& library, const VendorProblem& problem);

  // False: the library has no algorithm for it.
  bool choose();
  void run(Stream& stream, std::uint64_t a, std::uint64_t b, std::uint64_t out) const;
  // "cublasLt algorithm 66 tile 20 split-K 1 cluster 3": the library does not tell its kernel's
  // name. The numbers are those of cublasLt.h.
  [[nodiscard]] std::string name() const;

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    library_.calls.check(library_.calls.set_desc(desc_.get(), attribute, &value, sizeof value),
                         "describing a product");
  }
  [[nodiscard]] cublasLtEpilogue_t epilogue() const;
  [[nodiscard]] CublasLtOwned<cublasLtMatrixLayout_t> layout(const VendorMatrix& matrix,
                                                             std::int64_t rows,
                                                             std::int64_t cols) const;
  [[nodiscard]] std::string key() const;
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> propose() const;
  cublasStatus_t multiply(Stream& stream, const cublasLtMatmulAlgo_t& algorithm, std::uint64_t a,
                          std::uint64_t b, std::uint64_t out) const;
  cublasLtMatmulAlgo_t fastest(const std::vector<cublasLtMatmulAlgo_t>& proposals);

  CublasLt::State& library_;
  VendorProblem p_;
  CublasLtOwned<cublasLtMatmulDesc_t> desc_;
  CublasLtOwned<cublasLtMatrixLayout_t> a_, b_, out_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace fuseline::cuda
