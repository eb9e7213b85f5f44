// What operators of exported kernels are made of: tensors, uses of them, launches over them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cuda/export/exported.h"

namespace fuseline::cuda {

ExportedTensor exported(const Tensor& t, const std::string& name, Role role);

// What a run of programs reads before it stores it, and what it stores, as indices by `place`.
class Uses {
 public:
  void add(const Program& p, const std::function<int(TensorId)>& place);
  // `kept`: tensors that are of use outside.
  void give_to(ExportedOperator& op, const std::function<bool(int)>& kept) const;

 private:
  std::vector<int> inputs_, stored_order_;
  std::set<int> read_, stored_;
};

// Codes and workspaces go behind those that are there. Launches are placed ahead of it.
void take_codes(Exported& out, RecordedPlan recorded);
// The launch with the tensors of `place`, behind so many codes and workspaces.
RecordedLaunch placed(RecordedLaunch launch, const std::function<int(TensorId)>& place,
                      std::size_t codes, std::size_t workspaces);
// Results first, then what the gradient reads.
void results_first(const Exported& out, ExportedOperator& op);
// The GPU, the policy, the programs as text, the preparation.
void describe(Exported& out, const Plan& plan, const Gpu& gpu);

}  // namespace fuseline::cuda
