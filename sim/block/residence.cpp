#include "sim/block/residence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/block/block_walk.h"

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

namespace {

bool touches(const std::vector<Operand>& operands, TensorId tensor) {
  return std::ranges::any_of(operands, [&](const Operand& o) { return o.tensor == tensor; });
}

// The kernels from the one that makes the tensor (the first, of what is there already) to the last
// that uses it; outputs and caches stay.
struct Life {
  std::size_t begin = 0;
  std::size_t end = 0;  // behind the last
};

Life life_of(const Plan& plan, TensorId tensor) {
  const Role role = plan.graph.tensor(tensor).role;
  const bool made_here = role == Role::activation || role == Role::output;
  const bool stays = role != Role::activation;
  Life life;
  bool made = !made_here;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    for (const Program& phase : plan.kernels[i].phases) {
      if (!made && touches(stores(phase), tensor)) {
        made = true;
        life.begin = i;
      }
      if (touches(loads(phase), tensor) || touches(stores(phase), tensor)) life.end = i + 1;
    }
  }
  if (stays) life.end = plan.kernels.size();
  return life;
}

}  // namespace

std::vector<ResidentBytes> residence_over_time(const Plan& plan, const Gpu& gpu, TensorId tensor,
                                               const SimulationOptions& options) {
  const std::vector<WalkedKernel> walked =
      walk_block(plan, gpu, {.replay = options.replay, .runs = options.runs, .watched = tensor});
  const Life life = life_of(plan, tensor);
  std::vector<ResidentBytes> result;
  std::size_t kernel = 0;  // of the plan; the launches that follow one carry no operators
  for (const WalkedKernel& launch : walked) {
    const KernelEstimate& e = launch.estimate;
    if (kernel < plan.kernels.size() && e.name == plan.kernels[kernel].name) ++kernel;
    const std::size_t now = kernel - 1;
    const bool alive = now >= life.begin && now < life.end;
    result.push_back({e.name, alive ? launch.resident : Bytes(0), alive});
  }
  return result;
}

}  // namespace fuseline
