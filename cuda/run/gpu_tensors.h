// The tensors of a plan in the GPU's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/driver/driver.h"
#include "model/plan.h"
#include "sim/executor/storage.h"

namespace fuseline::cuda {

// Where an operand lies: its first element, and the bytes from row to row.
struct GpuMatrix {
  std::uint64_t address = 0;
  std::int64_t row_bytes = 0;
  std::int64_t rows = 0, cols = 0;
  Dtype type = Dtype::bf16;
  // Elements from a row to the next.
  [[nodiscard]] std::int64_t leading() const { return row_bytes / size_of(type); }
};

class GpuTensors {
 public:
  // All tensors that the plan keeps in HBM; rows start at multiples of 16 bytes, as the copy engine
  // wants. MissingError: they do not fit.
  GpuTensors(const Device& device, const Plan& plan);
  // Another layer of the same plan: weights and caches of its own, everything else shared.
  GpuTensors(const Device& device, const Plan& plan, const GpuTensors& other_layer);

  [[nodiscard]] bool has(TensorId id) const;
  // Elements of the matrix that an operand is; InternalError when its rows lie apart in runs of
  // more than one.
  [[nodiscard]] GpuMatrix matrix(const Operand& operand) const;
  // The operand's columns of all rows of its tensor.
  [[nodiscard]] GpuMatrix all_rows(Operand operand) const;
  [[nodiscard]] Bytes bytes() const { return bytes_; }  // that it allocated

  // Where a tensor begins, and its bytes with what lies behind its last row.
  [[nodiscard]] const DeviceBuffer& buffer(TensorId id) const;
  void upload(TensorId id, const executor::Storage& values);
  [[nodiscard]] executor::Storage download(TensorId id) const;
  // NaNs, so that what a kernel forgets to write is seen.
  void poison(TensorId id);

 private:
  GpuTensors(const Device& device, const Plan& plan, const GpuTensors* other_layer);
  [[nodiscard]] std::int64_t row_bytes(TensorId id) const;
  const Graph* graph_;
  std::vector<std::shared_ptr<DeviceBuffer>> buffers_;  // by TensorId; null: on chip
  Bytes bytes_;
};

// Weights and caches: each layer has its own.
bool is_per_layer(const Tensor& tensor);
// What GpuTensors allocates for a plan, and for another layer of it.
Bytes gpu_bytes(const Plan& plan);
Bytes gpu_bytes_per_layer(const Plan& plan);

}  // namespace fuseline::cuda
