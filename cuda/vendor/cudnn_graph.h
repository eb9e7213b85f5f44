// cuDNN's backend interface: tensors and operations become a graph, the graph a plan. Only files of
// cuda/vendor include this.
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/compile/shared_library.h"

namespace fuseline::cuda {

class CudnnCalls {
 public:
  CudnnCalls();  // MissingError: no cuDNN 9

  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendExecute) execute;

  // InternalError naming the failed call, with the library's own words.
  void check(cudnnStatus_t status, const std::string& doing) const;

 private:
  SharedLibrary library_;
};

class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnCalls& calls, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void link(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.handle_);
  }
  void finalize(const std::string& what);
  [[nodiscard]] bool can_finalize();  // false: the library does not support it
  [[nodiscard]] cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  const CudnnCalls* calls_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// Of four dimensions: batch, heads, rows, columns.
using CudnnShape = std::array<std::int64_t, 4>;
enum class CudnnHome : std::uint8_t { device, host, nowhere };  // nowhere: between operations

class CudnnGraph {
 public:
  CudnnGraph(const CudnnCalls& calls, cudnnHandle_t handle) : calls_(calls), handle_(handle) {}

  // Tensors are numbered from 0; the numbers name them in the plan, too.
  std::int64_t tensor(cudnnDataType_t type, const CudnnShape& sizes, const CudnnShape& strides,
                      CudnnHome home);
  std::int64_t between(cudnnDataType_t type, const CudnnShape& sizes);  // dense, nowhere
  void multiply(std::int64_t a, std::int64_t b, std::int64_t out);
  void reduce(cudnnReduceTensorOp_t op, std::int64_t in, std::int64_t out);
  struct Pointwise {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    cudnnDataType_t maths = CUDNN_DATA_FLOAT;
    std::int64_t x = -1, b = -1, t = -1, y = -1;
    std::int64_t axis = -1;  // of an index
  };
  void map(const Pointwise& p);

  // Empty: the library has no kernel for the graph.
  [[nodiscard]] std::optional<CudnnDescriptor> plan();

 private:
  CudnnDescriptor& of(std::int64_t tensor) { return tensors_[static_cast<std::size_t>(tensor)]; }

  const CudnnCalls& calls_;
  cudnnHandle_t handle_;
  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> makers_;  // what operations refer to
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace fuseline::cuda
