// The functions of cuBLASLt that fuseline uses, found while the program runs, and owners of its
// descriptors. Only files of cuda/vendor include this.
#pragma once

#include <cublasLt.h>

#include <string>
#include <utility>

#include "cuda/compile/shared_library.h"

namespace fuseline::cuda {

class CublasLtCalls {
 public:
  CublasLtCalls();  // MissingError: no cuBLASLt

  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) create_desc;
  decltype(&cublasLtMatmulDescDestroy) destroy_desc;
  decltype(&cublasLtMatmulDescSetAttribute) set_desc;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_attribute;

  // InternalError naming the failed call.
  void check(cublasStatus_t status, const std::string& doing) const;

 private:
  SharedLibrary library_;
};

// Frees a descriptor with the library's own function.
template <class Handle>
class CublasLtOwned {
 public:
  using Destroy = cublasStatus_t (*)(Handle);
  CublasLtOwned() = default;
  CublasLtOwned(Handle handle, Destroy destroy) : handle_(handle), destroy_(destroy) {}
  ~CublasLtOwned() {
    if (handle_ != nullptr) (void)destroy_(handle_);
  }
  CublasLtOwned(CublasLtOwned&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), destroy_(other.destroy_) {}
  CublasLtOwned& operator=(CublasLtOwned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  CublasLtOwned(const CublasLtOwned&) = delete;
  CublasLtOwned& operator=(const CublasLtOwned&) = delete;
  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  Destroy destroy_ = nullptr;
};

}  // namespace fuseline::cuda
