#include "sim/executor/memory.h"

#include "base/error.h"
#include "model/chain.h"

namespace fuseline::executor {

namespace {

std::vector<bool> written_tensors(const Plan& plan) {
  std::vector<bool> written(plan.graph.tensors().size());
  for (const Kernel& kernel : plan.kernels)
    for (const Program& phase : kernel.phases)
      for (const Operand& o : stores(phase))
        written[static_cast<std::size_t>(o.tensor.index)] = true;
  return written;
}

// What the two programs of a chain hand over lies in shared memory, in its storage type.
std::vector<bool> handed_over_tensors(const Plan& plan) {
  std::vector<bool> kept(plan.graph.tensors().size());
  for (const Kernel& kernel : plan.kernels)
    if (const auto h = handed_over(kernel)) kept[static_cast<std::size_t>(h->tensor.index)] = true;
  return kept;
}

std::shared_ptr<const Storage> given(const Tensor& t, const Inputs& inputs) {
  const auto found = inputs.find(t.name);
  if (found == inputs.end())
    throw InputError({.field = t.name, .message = "the input tensor is missing"});
  const Storage& s = *found->second;
  if (s.rows() != t.rows || s.cols() != t.cols || s.type() != t.dtype)
    throw InputError({.field = t.name,
                      .value = std::to_string(s.rows()) + " x " + std::to_string(s.cols()) + " " +
                               name_of(s.type()),
                      .message = "the input tensor has the wrong shape or type",
                      .allowed = std::to_string(t.rows) + " x " + std::to_string(t.cols) + " " +
                                 name_of(t.dtype)});
  return found->second;
}

}  // namespace

Memory::Memory(const Plan& plan, const Inputs& inputs)
    : tensors_(plan.graph.tensors().size()), written_(plan.graph.tensors().size()) {
  const std::vector<bool> written = written_tensors(plan);
  const std::vector<bool> kept = handed_over_tensors(plan);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& t = plan.graph.tensors()[i];
    if (plan.homes[i] != Home::hbm && !kept[i]) continue;
    const bool empty = t.role == Role::activation || t.role == Role::output;
    if (!empty && !written[i]) {
      tensors_[i] = given(t, inputs);
      continue;
    }
    written_[i] = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
    tensors_[i] = written_[i];
    if (empty) continue;
    const Bytes bytes = written_[i]->bytes();
    const std::byte* from = given(t, inputs)->at(0, 0);
    std::copy(from, from + bytes.value(), written_[i]->at(0, 0));
  }
}

const Storage& Memory::at(TensorId id) const {
  FUSELINE_ASSERT(has(id), "a tensor that is not in HBM");
  return *tensors_[index(id)];
}

Storage& Memory::writable(TensorId id) {
  FUSELINE_ASSERT(written_[index(id)] != nullptr, "a tensor that no kernel writes");
  return *written_[index(id)];
}

Port::Port(const Graph& graph, Memory& memory)
    : graph_(&graph), memory_(&memory), traffic_(graph.tensors().size()) {}

void Port::peek(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
                float* values) const {
  memory_->at(from.tensor).read(from.tensor_row(row), from.col_begin + col, count, values);
}

void Port::load(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
                float* values) {
  peek(from, row, col, count, values);
  count_load(from, count);
}

void Port::load_row(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
                    float* values) {
  memory_->at(from.tensor).read(row, from.col_begin + col, count, values);
  count_load(from, count);
}

void Port::store(const Operand& to, std::int64_t row, std::int64_t col, std::int64_t count,
                 const float* values) {
  memory_->writable(to.tensor).write(to.tensor_row(row), to.col_begin + col, count, values);
  count_store(to, count);
}

void Port::count_load(const Operand& from, std::int64_t elements) {
  traffic_[static_cast<std::size_t>(from.tensor.index)].loaded +=
      elements * size_of(graph_->tensor(from.tensor).dtype);
}

void Port::count_store(const Operand& to, std::int64_t elements) {
  traffic_[static_cast<std::size_t>(to.tensor.index)].stored +=
      elements * size_of(graph_->tensor(to.tensor).dtype);
}

}  // namespace fuseline::executor
