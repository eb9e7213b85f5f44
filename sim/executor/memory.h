// The simulated HBM: the tensors of one plan, and the counted accesses of kernels to them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/plan.h"
#include "model/primitives/tile_context.h"
#include "sim/block/estimate.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

class Memory {
 public:
  // Given tensors come from `inputs` and are shared, but for those that the plan writes to
  // (caches); all others that the plan keeps in HBM start as zeros. InputError: a tensor is missing
  // or of another shape or type.
  Memory(const Plan& plan, const Inputs& inputs);

  [[nodiscard]] bool has(TensorId id) const { return tensors_[index(id)] != nullptr; }
  [[nodiscard]] const Storage& at(TensorId id) const;
  [[nodiscard]] Storage& writable(TensorId id);  // asserts that the plan writes the tensor
  // Of a tensor whose values nobody can know: a GPU's shared memory had them.
  void forget(TensorId id) { tensors_[index(id)] = written_[index(id)] = nullptr; }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id.index); }
  std::vector<std::shared_ptr<const Storage>> tensors_;  // by TensorId
  std::vector<std::shared_ptr<Storage>> written_;        // the same objects, where written
};

// Bytes that one kernel loaded and stored, by TensorId.
struct Moved {
  std::int64_t loaded = 0;
  std::int64_t stored = 0;
};
using Traffic = std::vector<Moved>;

// One thread's way to memory: every load and store is counted. Row and column are those of the
// operand.
class Port final : public TileMemory {
 public:
  Port(const Graph& graph, Memory& memory);

  void load(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
            float* values) override;
  void store(const Operand& to, std::int64_t row, std::int64_t col, std::int64_t count,
             const float* values) override;
  // The same of a row of the tensor itself, where the program computes its number: rows of a table
  // of tokens or positions.
  void load_row(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
                float* values) override;
  // Counts loads or stores whose elements are at hand already (panels kept on chip by this CPU, not
  // by the GPU).
  void count_load(const Operand& from, std::int64_t elements);
  void count_store(const Operand& to, std::int64_t elements);
  // The same row without counting, for those who count otherwise.
  void peek(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
            float* values) const;

  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  // How the operand's elements are stored.
  [[nodiscard]] Dtype type(const Operand& o) const { return graph_->tensor(o.tensor).dtype; }

 private:
  const Graph* graph_;
  Memory* memory_;
  Traffic traffic_;
};

}  // namespace fuseline::executor
