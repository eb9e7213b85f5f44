#if FUSELINE_HAS_CUDA

#include "cuda/run/gpu_tensors.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/row_pitch.h"

namespace fuseline::cuda {

namespace {

// Room behind the last row, so that vector accesses that start inside stay inside.
constexpr std::int64_t kTail = 256;

Bytes size_on_gpu(const Tensor& t) { return Bytes(row_pitch(t) * t.rows + kTail); }

Bytes sum_of(const Plan& plan, bool per_layer_only) {
  Bytes sum;
  for (std::size_t i = 0; i < plan.homes.size(); ++i) {
    const Tensor& t = plan.graph.tensors()[i];
    if (plan.homes[i] == Home::hbm && (!per_layer_only || is_per_layer(t))) sum += size_on_gpu(t);
  }
  return sum;
}

}  // namespace

bool is_per_layer(const Tensor& tensor) {
  return tensor.role == Role::weight || tensor.role == Role::cache;
}
Bytes gpu_bytes(const Plan& plan) { return sum_of(plan, false); }
Bytes gpu_bytes_per_layer(const Plan& plan) { return sum_of(plan, true); }

GpuTensors::GpuTensors(const Device& device, const Plan& plan)
    : GpuTensors(device, plan, nullptr) {}

GpuTensors::GpuTensors(const Device& device, const Plan& plan, const GpuTensors& other_layer)
    : GpuTensors(device, plan, &other_layer) {}

GpuTensors::GpuTensors(const Device& device, const Plan& plan, const GpuTensors* other_layer)
    : graph_(&plan.graph) {
  bytes_ = other_layer == nullptr ? gpu_bytes(plan) : gpu_bytes_per_layer(plan);
  if (const Bytes free = device.free_memory(); bytes_ > free)
    throw MissingError(
        fmt::format("out of GPU memory: the tensors of plan {} need {} bytes, {} bytes are free",
                    plan.policy, bytes_.value(), free.value()));
  buffers_.resize(plan.homes.size());
  for (std::size_t i = 0; i < plan.homes.size(); ++i) {
    if (plan.homes[i] != Home::hbm) continue;
    const Tensor& t = plan.graph.tensors()[i];
    buffers_[i] = other_layer != nullptr && !is_per_layer(t)
                      ? other_layer->buffers_[i]
                      : std::make_shared<DeviceBuffer>(device.allocate(size_on_gpu(t)));
  }
}

std::int64_t GpuTensors::row_bytes(TensorId id) const { return row_pitch(graph_->tensor(id)); }

bool GpuTensors::has(TensorId id) const {
  return buffers_[static_cast<std::size_t>(id.index)] != nullptr;
}

const DeviceBuffer& GpuTensors::buffer(TensorId id) const {
  FUSELINE_ASSERT(has(id), "the tensor is in HBM");
  return *buffers_[static_cast<std::size_t>(id.index)];
}

GpuMatrix GpuTensors::matrix(const Operand& operand) const {
  FUSELINE_ASSERT(has(operand.tensor), "the tensor is in HBM");
  const Tensor& t = graph_->tensor(operand.tensor);
  GpuMatrix m;
  m.row_bytes = row_bytes(operand.tensor);
  m.rows = operand.rows;
  m.cols = operand.cols;
  m.type = t.dtype;
  m.address = buffers_[static_cast<std::size_t>(operand.tensor.index)]->address() +
              static_cast<std::uint64_t>(operand.col_begin * size_of(t.dtype));
  m.address += static_cast<std::uint64_t>(operand.at.begin * m.row_bytes);
  if (operand.at.run > 0) {
    FUSELINE_ASSERT(operand.at.run == 1, "rows that lie apart in runs are no matrix");
    m.row_bytes *= operand.at.step;
  }
  return m;
}

GpuMatrix GpuTensors::all_rows(Operand operand) const {
  operand.rows = graph_->tensor(operand.tensor).rows;
  operand.at = {};
  return matrix(operand);
}

void GpuTensors::upload(TensorId id, const executor::Storage& values) {
  const Tensor& t = graph_->tensor(id);
  FUSELINE_ASSERT(values.rows() == t.rows && values.cols() == t.cols && values.type() == t.dtype,
                  "values of the tensor's shape and type");
  const std::int64_t pitch = row_bytes(id);
  const auto used = static_cast<std::size_t>(t.cols * size_of(t.dtype));
  DeviceBuffer& buffer = *buffers_[static_cast<std::size_t>(id.index)];
  if (static_cast<std::size_t>(pitch) == used) {
    buffer.upload({values.at(0, 0), used * static_cast<std::size_t>(t.rows)});
    return;
  }
  std::vector<std::byte> rows(static_cast<std::size_t>(pitch * t.rows));
  for (std::int64_t r = 0; r < t.rows; ++r)
    std::memcpy(rows.data() + r * pitch, values.at(r, 0), used);
  buffer.upload(rows);
}

executor::Storage GpuTensors::download(TensorId id) const {
  const Tensor& t = graph_->tensor(id);
  executor::Storage values(t.dtype, t.rows, t.cols);
  const std::int64_t pitch = row_bytes(id);
  const auto used = static_cast<std::size_t>(t.cols * size_of(t.dtype));
  const DeviceBuffer& buffer = *buffers_[static_cast<std::size_t>(id.index)];
  if (static_cast<std::size_t>(pitch) == used) {
    buffer.download({values.at(0, 0), used * static_cast<std::size_t>(t.rows)});
    return values;
  }
  std::vector<std::byte> rows(static_cast<std::size_t>(pitch * t.rows));
  buffer.download(rows);
  for (std::int64_t r = 0; r < t.rows; ++r)
    std::memcpy(values.at(r, 0), rows.data() + r * pitch, used);
  return values;
}

void GpuTensors::poison(TensorId id) {
  // Not a number as bf16, fp16 and fp32.
  buffers_[static_cast<std::size_t>(id.index)]->fill(0x7fff7fffU);
}

}  // namespace fuseline::cuda

#endif
