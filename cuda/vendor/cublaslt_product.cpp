#if FUSELINE_HAS_CUDA && FUSELINE_HAS_CUBLASLT

#include "cuda/vendor/cublaslt_product.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

namespace {

constexpr int kProposals = 8;

cudaDataType_t type_of(Dtype type) {
  switch (type) {
    case Dtype::bf16:
      return CUDA_R_16BF;
    case Dtype::fp16:
      return CUDA_R_16F;
    case Dtype::fp32:
      return CUDA_R_32F;
    default:  // not_built() refuses what has them
      break;
  }
  FUSELINE_ASSERT(false, "unknown element type");
}

}  // namespace

CublasLtProduct::CublasLtProduct(CublasLt::State& library, const VendorProblem& problem)
    : library_(library), p_(problem) {
  const CublasLtCalls& calls = library.calls;
  cublasLtMatmulDesc_t desc = nullptr;
  calls.check(calls.create_desc(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  desc_ = {desc, calls.destroy_desc};
  set(CUBLASLT_MATMUL_DESC_TRANSA, p_.b.transposed ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p_.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue());
  if (p_.bias != 0) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p_.bias);
  if (p_.before_gelu != 0) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p_.before_gelu);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
        p_.before_gelu_row_bytes / size_of(p_.out.matrix.type));
  }
  b_ = layout(p_.b, p_.b.transposed ? p_.N : p_.K, p_.b.transposed ? p_.K : p_.N);
  a_ = layout(p_.a, p_.a.transposed ? p_.M : p_.K, p_.a.transposed ? p_.K : p_.M);
  out_ = layout(p_.out, p_.N, p_.M);
}

bool CublasLtProduct::choose() {
  const auto known = library_.chosen.find(key());
  if (known != library_.chosen.end()) {
    algorithm_ = known->second;
    return true;
  }
  std::vector<cublasLtMatmulAlgo_t> proposals = propose();
  if (proposals.empty()) return false;
  algorithm_ = proposals.size() == 1 ? proposals.front() : fastest(proposals);
  library_.chosen.emplace(key(), algorithm_);
  return true;
}

void CublasLtProduct::run(Stream& stream, std::uint64_t a, std::uint64_t b,
                          std::uint64_t out) const {
  library_.calls.check(multiply(stream, algorithm_, a, b, out), "multiplying " + key());
}

std::string CublasLtProduct::name() const {
  const auto attribute = [&](cublasLtMatmulAlgoConfigAttributes_t which) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    (void)library_.calls.algorithm_attribute(&algorithm_, which, &value, sizeof value, &written);
    return value;
  };
  std::string name = fmt::format(
      "cublasLt algorithm {} tile {} split-K {}", attribute(CUBLASLT_ALGO_CONFIG_ID),
      attribute(CUBLASLT_ALGO_CONFIG_TILE_ID), attribute(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
#if CUBLAS_VER_MAJOR >= 12
  name += fmt::format(" cluster {}", attribute(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
#endif
  return name;
}

cublasLtEpilogue_t CublasLtProduct::epilogue() const {
  const bool bias = p_.bias != 0;
  if (!p_.form.gelu) return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (p_.before_gelu != 0)
    return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

CublasLtOwned<cublasLtMatrixLayout_t> CublasLtProduct::layout(const VendorMatrix& side,
                                                              std::int64_t rows,
                                                              std::int64_t cols) const {
  const CublasLtCalls& calls = library_.calls;
  cublasLtMatrixLayout_t handle = nullptr;
  calls.check(
      calls.create_layout(&handle, type_of(side.matrix.type), static_cast<std::uint64_t>(rows),
                          static_cast<std::uint64_t>(cols), side.matrix.leading()),
      "describing a matrix");
  CublasLtOwned<cublasLtMatrixLayout_t> owner(handle, calls.destroy_layout);
  if (p_.count > 1) {
    const auto count = static_cast<std::int32_t>(p_.count);
    calls.check(calls.set_layout(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                "describing a batch");
    calls.check(calls.set_layout(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &side.stride,
                                 sizeof side.stride),
                "describing a batch");
  }
  return owner;
}

std::string CublasLtProduct::key() const {
  const auto side = [](const VendorMatrix& s) {
    return fmt::format("{}{} ld {} every {} at {}", static_cast<int>(s.matrix.type),
                       s.transposed ? "t" : "", s.matrix.leading(), s.stride, s.alignment);
  };
  return fmt::format("{} x {} x {} ({} times), a {}, b {}, out {}, epilogue {}{}", p_.M, p_.N, p_.K,
                     p_.count, side(p_.a), side(p_.b), side(p_.out), static_cast<int>(epilogue()),
                     p_.form.accumulate ? " accumulate" : "");
}

std::vector<cublasLtMatmulAlgo_t> CublasLtProduct::propose() const {
  const CublasLtCalls& calls = library_.calls;
  cublasLtMatmulPreference_t handle = nullptr;
  calls.check(calls.create_preference(&handle), "asking for algorithms");
  const CublasLtOwned<cublasLtMatmulPreference_t> preference(handle, calls.destroy_preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    calls.check(calls.set_preference(handle, attribute, &value, sizeof value),
                "asking for algorithms");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
         static_cast<std::uint64_t>(library_.workspace.size().value()));
  // Parts of K are summed in fp32, as a program promises, not in the result's type.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p_.b.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p_.a.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p_.out.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p_.out.alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(kProposals);
  int found = 0;
  const cublasStatus_t status =
      calls.heuristic(library_.handle, desc_.get(), b_.get(), a_.get(), out_.get(), out_.get(),
                      handle, kProposals, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  calls.check(status, "asking for algorithms for " + key());
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (const auto& result = results[static_cast<std::size_t>(i)];
        result.state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(result.algo);
  return algorithms;
}

cublasStatus_t CublasLtProduct::multiply(Stream& stream, const cublasLtMatmulAlgo_t& algorithm,
                                         std::uint64_t a, std::uint64_t b,
                                         std::uint64_t out) const {
  const auto alpha = static_cast<float>(p_.form.scale);
  const float beta = p_.form.accumulate ? 1.0F : 0.0F;
  const auto pointer = [](std::uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as numbers
    return reinterpret_cast<void*>(address);
  };
  return library_.calls.matmul(library_.handle, desc_.get(), &alpha, pointer(b), b_.get(),
                               pointer(a), a_.get(), &beta, pointer(out), out_.get(), pointer(out),
                               out_.get(), &algorithm, pointer(library_.workspace.address()),
                               static_cast<std::size_t>(library_.workspace.size().value()),
                               static_cast<cudaStream_t>(stream.handle()));
}

// The median of some runs of each in turn, L2 emptied before each run; results go to memory of
// their own. Where that cannot be had, the library's first choice.
cublasLtMatmulAlgo_t CublasLtProduct::fastest(const std::vector<cublasLtMatmulAlgo_t>& proposals) {
  constexpr int kRuns = 5;
  const Device& device = *library_.device;
  const GpuMatrix& out = p_.out.matrix;
  const Bytes results((p_.M * out.leading() + (p_.count - 1) * p_.out.stride) * size_of(out.type));
  const Bytes inputs = p_.before_gelu != 0 ? Bytes(p_.M * p_.before_gelu_row_bytes) : Bytes(0);
  const Bytes flush = 2 * device.info().l2;
  if (device.free_memory() < results + inputs + flush) return proposals.front();
  DeviceBuffer scratch = device.allocate(results);
  DeviceBuffer aux = device.allocate(inputs);
  DeviceBuffer cold = device.allocate(flush);
  if (p_.before_gelu != 0) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.address());
  scratch.fill(0);

  Stream stream = device.stream();
  Event begin = device.event();
  Event end = device.event();
  std::vector<std::vector<double>> times(proposals.size());
  for (int run = -1; run < kRuns; ++run) {  // the first is not timed
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      stream.zero(cold.address(), cold.size());
      begin.record(stream);
      const cublasStatus_t status = multiply(stream, proposals[i], p_.a.matrix.address,
                                             p_.b.matrix.address, scratch.address());
      end.record(stream);
      stream.synchronize("trying algorithms for " + key());
      const double time = status == CUBLAS_STATUS_SUCCESS ? end.since(begin).value() : 1e30;
      if (run >= 0) times[i].push_back(time);
    }
  }
  if (p_.before_gelu != 0) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p_.before_gelu);
  for (auto& t : times) std::ranges::nth_element(t, t.begin() + kRuns / 2);
  const auto best = std::ranges::min_element(
      times, {}, [](const std::vector<double>& t) { return t[kRuns / 2]; });
  return proposals[static_cast<std::size_t>(best - times.begin())];
}

}  // namespace fuseline::cuda

#endif
