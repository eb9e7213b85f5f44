#if FUSELINE_HAS_CUBLASLT

#include "cuda/vendor/cublaslt_calls.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/vendor/toolkit_library.h"

namespace fuseline::cuda {

CublasLtCalls::CublasLtCalls()
    : library_(toolkit_library("cublasLt", {"13", "12", "11"}),
               "no cuBLASLt, which comes with the CUDA toolkit, so the vendor's GEMMs cannot run") {
  library_.load(status_string, "cublasLtGetStatusString");
  library_.load(version, "cublasLtGetVersion");
  library_.load(create, "cublasLtCreate");
  library_.load(destroy, "cublasLtDestroy");
  library_.load(matmul, "cublasLtMatmul");
  library_.load(create_desc, "cublasLtMatmulDescCreate");
  library_.load(destroy_desc, "cublasLtMatmulDescDestroy");
  library_.load(set_desc, "cublasLtMatmulDescSetAttribute");
  library_.load(create_layout, "cublasLtMatrixLayoutCreate");
  library_.load(destroy_layout, "cublasLtMatrixLayoutDestroy");
  library_.load(set_layout, "cublasLtMatrixLayoutSetAttribute");
  library_.load(create_preference, "cublasLtMatmulPreferenceCreate");
  library_.load(destroy_preference, "cublasLtMatmulPreferenceDestroy");
  library_.load(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  library_.load(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library_.load(algorithm_attribute, "cublasLtMatmulAlgoConfigGetAttribute");
}

void CublasLtCalls::check(cublasStatus_t status, const std::string& doing) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw InternalError(fmt::format("cuBLASLt, {}: {}", doing, status_string(status)));
}

}  // namespace fuseline::cuda

#endif
