// The least that covering the rest of a block costs, where kernels cost what they cost at least.
#pragma once

#include <unordered_map>
#include <vector>

#include "sim/search/kernel_space.h"

namespace fuseline {

// Kernels of a space by their first unit. The first unit that is not covered begins a kernel, so
// these are the only ones that can come next.
struct KernelMenu {
  std::vector<UnitSet> sets;
  std::vector<std::vector<std::size_t>> beginning;  // by unit: places in `sets`

  KernelMenu(std::vector<UnitSet> kernels, std::size_t units);
};

// Dynamic programming over what is covered. Cycles among kernels are not looked at, so a plan may
// cost more and never less. Where there are too many states it goes on with every unit's least
// share of a kernel, which is less still.
class LeastRest {
 public:
  // `menu` must outlive it; `costs` by place in it.
  LeastRest(const KernelMenu& menu, std::size_t units, std::vector<double> costs);

  double of(const UnitSet& covered);
  [[nodiscard]] double cost(std::size_t kernel) const { return costs_[kernel]; }

 private:
  [[nodiscard]] double shares_of_rest(const UnitSet& covered) const;

  const KernelMenu& menu_;
  std::size_t units_;
  std::vector<double> costs_, shares_;
  std::unordered_map<UnitSet, double> known_;
};

}  // namespace fuseline
