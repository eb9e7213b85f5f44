// Which tensors of a plan have a counterpart in the original block, and how far they are from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/reference.h"
#include "sim/executor/memory.h"
#include "sim/executor/verification.h"

namespace fuseline::executor {

// Errors of the unfused plan's tensors, by name.
struct Baseline {
  std::map<std::string, TensorError> errors;
};

class Comparison {
 public:
  // Both must outlive the object.
  Comparison(const Graph& block, const TensorValues& reference)
      : block_(block), reference_(reference) {}

  [[nodiscard]] Baseline baseline(const Plan& unfused, const Memory& memory) const;

  // Tensors that the plan stores: outputs, caches, and intermediates that the block has too.
  // Outputs that only the plan has (statistics for the next block) are computed from the block's in
  // fp64 and judged by the error of the tensor that they are made of. Where a plan reorders
  // columns, the reference is reordered; intermediates in another order are left out.
  [[nodiscard]] std::vector<ComparedTensor> judge(const Plan& plan, const Memory& memory,
                                                  const Inputs& inputs,
                                                  const Baseline& baseline) const;

 private:
  [[nodiscard]] double tolerance_of_block() const;
  void decide(ComparedTensor& tensor, bool unfused_plan) const;

  const Graph& block_;
  const TensorValues& reference_;
};

}  // namespace fuseline::executor
