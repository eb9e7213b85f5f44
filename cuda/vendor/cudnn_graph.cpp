#if FUSELINE_HAS_CUDNN

#include "cuda/vendor/cudnn_graph.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/vendor/toolkit_library.h"

namespace fuseline::cuda {

CudnnCalls::CudnnCalls()
    : library_(toolkit_library("cudnn", {"9"}),
               "no cuDNN 9, so the vendor's attention cannot run") {
  library_.load(version, "cudnnGetVersion");
  library_.load(error_string, "cudnnGetErrorString");
  library_.load(last_error, "cudnnGetLastErrorString");
  library_.load(create, "cudnnCreate");
  library_.load(destroy, "cudnnDestroy");
  library_.load(set_stream, "cudnnSetStream");
  library_.load(create_descriptor, "cudnnBackendCreateDescriptor");
  library_.load(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  library_.load(finalize, "cudnnBackendFinalize");
  library_.load(set_attribute, "cudnnBackendSetAttribute");
  library_.load(get_attribute, "cudnnBackendGetAttribute");
  library_.load(execute, "cudnnBackendExecute");
}

void CudnnCalls::check(cudnnStatus_t status, const std::string& doing) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> words{};
  last_error(words.data(), words.size());
  throw InternalError(fmt::format("cuDNN, {}: {} ({})", doing, error_string(status), words.data()));
}

CudnnDescriptor::CudnnDescriptor(const CudnnCalls& calls, cudnnBackendDescriptorType_t type)
    : calls_(&calls) {
  calls.check(calls.create_descriptor(type, &handle_), "making a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) (void)calls_->destroy_descriptor(handle_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : calls_(other.calls_), handle_(std::exchange(other.handle_, nullptr)) {}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  calls_->check(calls_->set_attribute(handle_, name, type, count, values),
                fmt::format("setting attribute {}", static_cast<int>(name)));
}

void CudnnDescriptor::finalize(const std::string& what) {
  calls_->check(calls_->finalize(handle_), "describing " + what);
}

bool CudnnDescriptor::can_finalize() { return calls_->finalize(handle_) == CUDNN_STATUS_SUCCESS; }

std::int64_t CudnnGraph::tensor(cudnnDataType_t type, const CudnnShape& sizes,
                                const CudnnShape& strides, CudnnHome home) {
  const auto number = static_cast<std::int64_t>(tensors_.size());
  CudnnDescriptor d(calls_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data());
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, home == CudnnHome::nowhere);
  d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, home == CudnnHome::host);
  d.finalize("a tensor");
  tensors_.push_back(std::move(d));
  return number;
}

std::int64_t CudnnGraph::between(cudnnDataType_t type, const CudnnShape& sizes) {
  const CudnnShape strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  return tensor(type, sizes, strides, CudnnHome::nowhere);
}

void CudnnGraph::multiply(std::int64_t a, std::int64_t b, std::int64_t out) {
  CudnnDescriptor maker(calls_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  maker.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  maker.finalize("a product");
  CudnnDescriptor op(calls_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  op.link(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a));
  op.link(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b));
  op.link(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(out));
  op.link(CUDNN_ATTR_OPERATION_MATMUL_DESC, maker);
  op.finalize("a product");
  makers_.push_back(std::move(maker));
  operations_.push_back(std::move(op));
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t kind, std::int64_t in, std::int64_t out) {
  CudnnDescriptor maker(calls_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  maker.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, kind);
  maker.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  maker.finalize("a reduction");
  CudnnDescriptor op(calls_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  op.link(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(in));
  op.link(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(out));
  op.link(CUDNN_ATTR_OPERATION_REDUCTION_DESC, maker);
  op.finalize("a reduction");
  makers_.push_back(std::move(maker));
  operations_.push_back(std::move(op));
}

void CudnnGraph::map(const Pointwise& p) {
  CudnnDescriptor maker(calls_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  maker.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, p.mode);
  maker.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, p.maths);
  if (p.axis >= 0) maker.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, p.axis);
  maker.finalize("a map");
  CudnnDescriptor op(calls_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  op.link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, maker);
  op.link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(p.x));
  if (p.b >= 0) op.link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(p.b));
  if (p.t >= 0) op.link(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(p.t));
  op.link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(p.y));
  op.finalize("a map");
  makers_.push_back(std::move(maker));
  operations_.push_back(std::move(op));
}

std::optional<CudnnDescriptor> CudnnGraph::plan() {
  // CUDNN_ATTR_OPERATIONGRAPH_HANDLE and CUDNN_ATTR_EXECUTION_PLAN_HANDLE: deprecated in new
  // headers, needed by older libraries.
  constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);
  constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& op : operations_) handles.push_back(op.handle());
  CudnnDescriptor graph(calls_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(handles),
            handles.data());
  graph.set(kGraphHandle, CUDNN_TYPE_HANDLE, handle_);
  if (!graph.can_finalize()) return std::nullopt;

  CudnnDescriptor heuristics(calls_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (!heuristics.can_finalize()) return std::nullopt;
  std::int64_t count = 0;
  calls_.check(calls_.get_attribute(heuristics.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
               "asking for kernels");
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> results;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(calls_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    results.push_back(configs.back().handle());
  }
  calls_.check(calls_.get_attribute(heuristics.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, results.data()),
               "asking for kernels");
  for (std::int64_t i = 0; i < count; ++i) {
    CudnnDescriptor plan(calls_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(kPlanHandle, CUDNN_TYPE_HANDLE, handle_);
    plan.link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[static_cast<std::size_t>(i)]);
    if (plan.can_finalize()) return plan;
  }
  return std::nullopt;
}

}  // namespace fuseline::cuda

#endif
