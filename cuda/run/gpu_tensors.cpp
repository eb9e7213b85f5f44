#if FUSELINE_HAS_CUDA

#include "cuda/run/gpu_tensors.h"

#include <cstring>

#include <fmt/format.h>

#include "model/error.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kRowAlignment = 16;
// Room behind the last row, so that vector accesses that start inside stay inside.
constexpr std::int64_t kTail = 256;

}  // namespace

GpuTensors::GpuTensors(const Device& device, const Plan& plan) : graph_(&plan.graph) {
  const auto& tensors = plan.graph.tensors();
  buffers_.resize(tensors.size());
  std::vector<Bytes> sizes(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (plan.homes[i] != Home::hbm) continue;
    const TensorId id{static_cast<std::int32_t>(i)};
    sizes[i] = Bytes(row_bytes(id) * tensors[i].rows + kTail);
    bytes_ += sizes[i];
  }
  if (const Bytes free = device.free_memory(); bytes_ > free)
    throw MissingError(
        fmt::format("out of GPU memory: the tensors of plan {} need {} bytes, {} bytes "
                    "are free",
                    plan.policy, bytes_.value(), free.value()));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (sizes[i].value() > 0) buffers_[i] = device.allocate(sizes[i]);
}

std::int64_t GpuTensors::row_bytes(TensorId id) const {
  const Tensor& t = graph_->tensor(id);
  const std::int64_t bytes = t.cols * size_of(t.dtype);
  return (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

bool GpuTensors::has(TensorId id) const {
  return buffers_[static_cast<std::size_t>(id.index)].address() != 0;
}

GpuMatrix GpuTensors::matrix(const Operand& operand, std::int64_t sequences) const {
  FUSELINE_ASSERT(has(operand.tensor), "the tensor is in HBM");
  const Tensor& t = graph_->tensor(operand.tensor);
  GpuMatrix m;
  m.row_bytes = row_bytes(operand.tensor);
  m.rows = operand.rows;
  m.cols = operand.cols;
  m.type = t.dtype;
  m.address = buffers_[static_cast<std::size_t>(operand.tensor.index)].address() +
              static_cast<std::uint64_t>(operand.col_begin * size_of(t.dtype));
  if (operand.rows != t.rows) {
    const std::int64_t part = t.rows / sequences;
    const std::int64_t each = operand.rows / sequences;
    m.address += static_cast<std::uint64_t>((part - each) * m.row_bytes);
    // One row of each part, or one part: a matrix.
    FUSELINE_ASSERT(each == 1 || sequences == 1, "rows that lie apart are one of each sequence");
    if (each == 1) m.row_bytes *= part;
  }
  return m;
}

void GpuTensors::upload(TensorId id, const executor::Storage& values) {
  const Tensor& t = graph_->tensor(id);
  FUSELINE_ASSERT(values.rows() == t.rows && values.cols() == t.cols && values.type() == t.dtype,
                  "values of the tensor's shape and type");
  const std::int64_t pitch = row_bytes(id);
  const auto used = static_cast<std::size_t>(t.cols * size_of(t.dtype));
  std::vector<std::byte> rows(static_cast<std::size_t>(pitch * t.rows));
  for (std::int64_t r = 0; r < t.rows; ++r)
    std::memcpy(rows.data() + r * pitch, values.at(r, 0), used);
  buffers_[static_cast<std::size_t>(id.index)].upload(rows);
}

executor::Storage GpuTensors::download(TensorId id) const {
  const Tensor& t = graph_->tensor(id);
  executor::Storage values(t.dtype, t.rows, t.cols);
  const std::int64_t pitch = row_bytes(id);
  const auto used = static_cast<std::size_t>(t.cols * size_of(t.dtype));
  std::vector<std::byte> rows(static_cast<std::size_t>(pitch * t.rows));
  buffers_[static_cast<std::size_t>(id.index)].download(rows);
  for (std::int64_t r = 0; r < t.rows; ++r)
    std::memcpy(values.at(r, 0), rows.data() + r * pitch, used);
  return values;
}

void GpuTensors::poison(TensorId id) {
  // Not a number as bf16, fp16 and fp32.
  buffers_[static_cast<std::size_t>(id.index)].fill(0x7fff7fffU);
}

}  // namespace fuseline::cuda

#endif
