#if FUSELINE_HAS_CUDA

#include "cuda/run/block_on_gpu.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

namespace {

// Weights of this many L2 capacities pass between two uses of the same one.
constexpr std::int64_t kCapacities = 4;

std::set<TensorId> stored_by(const Plan& plan) {
  std::set<TensorId> stored;
  for (const Kernel& kernel : plan.kernels)
    for (const Program& program : kernel.phases)
      for (const Operand& o : stores(program)) stored.insert(o.tensor);
  return stored;
}

bool overwrites_its_state(const Program& program) {
  const auto* scan = std::get_if<ScanMainloop>(&program.mainloop);
  return scan != nullptr && scan->state && scan->state_after &&
         overlap(*scan->state, *scan->state_after);
}

std::string shape_of(const Program& program) {
  if (const auto* g = std::get_if<GemmMainloop>(&program.mainloop))
    return fmt::format("GEMM {} x {} x {}", g->M, g->N, g->K);
  if (const auto* a = std::get_if<AttentionMainloop>(&program.mainloop))
    return fmt::format("attention of {} x {} tokens, {} keys, {} heads of {}", a->shape.batch,
                       a->shape.q_tokens, a->shape.kv_tokens, a->shape.heads, a->shape.head_width);
  if (const auto* s = std::get_if<StreamMainloop>(&program.mainloop))
    return fmt::format("stream of {} x {}", s->rows, s->cols);
  if (const auto* s = std::get_if<ScanMainloop>(&program.mainloop))
    return fmt::format("scan of {} x {} tokens, {} heads of {} x {}", s->shape.batch,
                       s->shape.tokens, s->shape.heads, s->shape.head_width, s->shape.state_width);
  const auto& r = std::get<RowMainloop>(program.mainloop);
  return fmt::format("rows {} x {}", r.rows, r.cols);
}

}  // namespace

int layers_beyond_l2(const Plan& plan, Bytes l2) {
  const std::int64_t each = std::max<std::int64_t>(gpu_bytes_per_layer(plan).value(), 1);
  const std::int64_t wanted = (kCapacities * l2.value() + each - 1) / each;
  constexpr std::int64_t kMost = 64;  // weights of some kilobytes stay in L2 whatever one does
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, kMost));
}

BlockOnGpu::BlockOnGpu(const Device& device, KernelStore& store, const Plan& plan,
                       const Gpu& described, int layers, const PrepareOptions& options)
    : plan_(plan) {
  const Bytes need = gpu_bytes(plan) + gpu_bytes_per_layer(plan) * (layers - 1);
  if (const Bytes free = device.free_memory(); need > free)
    throw MissingError(
        fmt::format("out of GPU memory: {} of plan {} need {} bytes, {} bytes are free",
                    layers == 1 ? std::string("the tensors") : fmt::format("{} layers", layers),
                    plan.policy, need.value(), free.value()));
  for (int layer = 0; layer < layers; ++layer) {
    tensors_.push_back(layer == 0 ? std::make_unique<GpuTensors>(device, plan)
                                  : std::make_unique<GpuTensors>(device, plan, *tensors_.front()));
    kernels_.push_back(prepare_plan({device, store, plan, *tensors_.back()}, described, options));
  }
}

void BlockOnGpu::give(const executor::Inputs& inputs) {
  const std::set<TensorId> stored = stored_by(plan_);
  for (std::size_t layer = 0; layer < tensors_.size(); ++layer) {
    for (std::size_t i = 0; i < plan_.graph.tensors().size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      const Tensor& t = plan_.graph.tensors()[i];
      if (!tensors_[layer]->has(id) || (layer > 0 && !is_per_layer(t))) continue;
      const auto given = inputs.find(t.name);
      if (given != inputs.end())
        tensors_[layer]->upload(id, *given->second);
      else if (stored.contains(id))
        tensors_[layer]->poison(id);
    }
  }
}

Bytes BlockOnGpu::bytes() const {
  Bytes sum;
  for (const auto& t : tensors_) sum += t->bytes();
  return sum;
}

const GpuTensors& BlockOnGpu::tensors(int layer) const {
  return *tensors_.at(static_cast<std::size_t>(layer));
}

std::vector<PreparedKernel>& BlockOnGpu::kernels(int layer) {
  return kernels_.at(static_cast<std::size_t>(layer));
}

void BlockOnGpu::launch(Stream& stream, int layer) {
  for (PreparedKernel& kernel : kernels(layer))
    for (const auto& launch : kernel.launches) launch->launch(stream);
}

bool BlockOnGpu::overwrites_states() const {
  return std::ranges::any_of(plan_.kernels, [](const Kernel& kernel) {
    return std::ranges::any_of(kernel.phases, overwrites_its_state);
  });
}

void BlockOnGpu::run_step_by_step(Stream& stream) {
  for (std::size_t i = 0; i < kernels_.front().size(); ++i) {
    PreparedKernel& kernel = kernels_.front()[i];
    const std::string doing = fmt::format("policy {}, kernel {} ({})", plan_.policy, kernel.name,
                                          shape_of(plan_.kernels[i].phases.front()));
    for (const auto& launch : kernel.launches) launch->launch(stream);
    stream.synchronize(doing);
  }
}

std::unique_ptr<executor::Memory> BlockOnGpu::result(const executor::Inputs& inputs,
                                                     int layer) const {
  auto memory = std::make_unique<executor::Memory>(plan_, inputs);
  const GpuTensors& tensors = *tensors_.at(static_cast<std::size_t>(layer));
  for (const TensorId id : stored_by(plan_)) {
    if (tensors.has(id))
      memory->writable(id) = tensors.download(id);
    else
      memory->forget(id);  // what a chain hands over never leaves its thread blocks
  }
  return memory;
}

std::vector<executor::Storage> BlockOnGpu::outputs(int layer) const {
  std::vector<executor::Storage> values;
  for (const TensorId id : stored_by(plan_)) {
    const Role role = plan_.graph.tensor(id).role;
    if (role == Role::output || role == Role::cache)
      values.push_back(tensors_.at(static_cast<std::size_t>(layer))->download(id));
  }
  return values;
}

}  // namespace fuseline::cuda

#endif
