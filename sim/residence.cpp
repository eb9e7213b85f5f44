#include "sim/residence.h"

#include <fmt/format.h>

#include <map>
#include <string>

namespace fuseline {

void add_residence(Explanation& explanation, const Plan& plan, const PlanEstimate& estimate) {
  struct Reads {
    Bytes asked, missed;
  };
  std::map<std::string, Reads> reads;
  for (const KernelEstimate& kernel : estimate.kernels) {
    for (const RequestedBytes& r : kernel.requested) {
      Reads& sum = reads[plan.graph.tensor(r.tensor).name];
      sum.asked += r.loaded;
      sum.missed += r.hbm_read;
    }
  }
  for (TensorExplanation& tensor : explanation.tensors) {
    const auto found = reads.find(tensor.name);
    if (found == reads.end() || found->second.asked == Bytes(0)) continue;
    const double hits = 1.0 - found->second.missed.as_double() / found->second.asked.as_double();
    if (hits >= 0.99) {
      tensor.home.replace(
          0,
          tensor.home.find(',') == std::string::npos ? tensor.home.size() : tensor.home.find(','),
          "L2");
    } else if (hits >= 0.01) {
      tensor.home += fmt::format(", {:.0f} % of loads hit L2", 100 * hits);
    }
  }
}

}  // namespace fuseline
