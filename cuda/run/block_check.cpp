#include "cuda/run/block_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "model/blocks/block.h"
#include "model/operators/operator_table.h"
#include "sim/executor/execute.h"
#include "sim/executor/reference_fast.h"

namespace fuseline::cuda {

namespace {

constexpr std::uint64_t kPrime = 0x100000001b3ULL;

// FNV-1a, eight bytes at a time.
std::uint64_t hash_of(const std::byte* data, std::size_t size) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<std::size_t>(8, size - at));
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

BlockCheck::BlockCheck(const ModelConfig& config, const Workload& workload, std::uint64_t seed,
                       const executor::Workers& workers)
    : block_(std::make_unique<const Graph>(build_block(config, workload))),
      seed_(seed),
      workers_(workers),
      inputs_(executor::random_storage(*block_, seed, workers)) {}

executor::Inputs BlockCheck::inputs_of(const Plan& plan) const {
  return executor::prepare_inputs(plan, inputs_, seed_, workers_);
}

void BlockCheck::compute_reference() {
  if (reference_) return;
  reference_ = std::make_unique<TensorValues>(executor::fast_reference(*block_, inputs_, workers_));
  comparison_ = std::make_unique<executor::Comparison>(*block_, *reference_);
}

void BlockCheck::set_baseline(const Plan& unfused, const executor::Memory& memory) {
  compute_reference();
  baseline_ = comparison_->baseline(unfused, memory);
}

std::vector<executor::ComparedTensor> BlockCheck::judge(const Plan& plan,
                                                        const executor::Memory& memory,
                                                        const executor::Inputs& inputs) const {
  return comparison_->judge(plan, memory, inputs, baseline_);
}

std::string first_not_finite(const Plan& plan, const executor::Memory& memory,
                             const executor::Workers& workers) {
  for (const Kernel& kernel : plan.kernels) {
    for (const Program& program : kernel.phases) {
      for (const Operand& o : stores(program)) {
        if (!memory.has(o.tensor)) continue;
        // Columns that nobody stores (the keys' part of a product, where keys go to the cache) stay
        // NaNs.
        const executor::Storage& all = memory.at(o.tensor);
        std::atomic<bool> finite = true;
        executor::parallel_for(workers, all.rows(), [&](std::int64_t row, int) {
          std::vector<float> values(static_cast<std::size_t>(o.cols));
          all.read(row, o.col_begin, o.cols, values.data());
          if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); }))
            finite = false;
        });
        if (!finite) return plan.graph.tensor(o.tensor).name;
      }
    }
  }
  return {};
}

std::uint64_t fingerprint(const std::vector<executor::Storage>& tensors,
                          const executor::Workers& workers) {
  std::uint64_t all = 0;
  for (const executor::Storage& tensor : tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.cols() * size_of(tensor.type()));
    std::vector<std::uint64_t> rows(static_cast<std::size_t>(tensor.rows()));
    executor::parallel_for(workers, tensor.rows(), [&](std::int64_t row, int) {
      rows[static_cast<std::size_t>(row)] = hash_of(tensor.at(row, 0), bytes);
    });
    all ^= hash_of(reinterpret_cast<const std::byte*>(rows.data()), 8 * rows.size());
    all *= kPrime;
  }
  return all;
}

bool all_finite(const std::vector<executor::Storage>& tensors, const executor::Workers& workers) {
  return std::ranges::none_of(tensors, [&](const executor::Storage& tensor) {
    return executor::find_not_finite(tensor, workers).has_value();
  });
}

Workload shrunk(const ModelConfig& config, const Workload& workload, double most) {
  Workload small = workload;
  const auto cost = [&] { return flops(build_block(config, small)).as_double(); };
  while (small.phase != Phase::decode && small.seq > 128 && cost() > most)
    small.seq = (small.seq + 1) / 2;
  while (small.batch > 1 && cost() > most) small.batch = (small.batch + 1) / 2;
  return small;
}

}  // namespace fuseline::cuda
