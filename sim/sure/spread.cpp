#include "sim/sure/spread.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/sure/traits.h"

namespace fuseline {

double spread_factor(const std::vector<Spread>& spreads, const WorkClass& work) {
  const std::vector<std::string>& names = trait_names(work.what);
  if (work.traits.size() != names.size()) return 1;
  double sum = 0;
  for (const Spread& s : spreads) {
    if (s.what != work.what || s.phase != work.phase) continue;
    const auto at = std::ranges::find(names, s.trait);
    if (at == names.end()) continue;
    const double trait = work.traits[static_cast<std::size_t>(at - names.begin())];
    sum += s.slope * (std::clamp(trait, s.least, s.most) - s.centre);
  }
  return std::exp(sum);
}

}  // namespace fuseline
