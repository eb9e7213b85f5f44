#include "sim/selection/simulation_size.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/blocks/block.h"
#include "sim/block/walk_size.h"

namespace fuseline {

namespace {

// Below it no policy's plan of any model comes near the limit, and none needs to be made.
constexpr double kSmall = 1e6;

// About how many tiles of 128 × 128 the activations have, scores of attention among them.
double rough_tiles(const ModelConfig& model, const Workload& w) {
  Workload forward = w;
  if (w.phase == Phase::train) forward.phase = Phase::forward;
  double tiles = 0;
  const Graph block = build_block(model, forward);
  for (const Tensor& t : block.tensors())
    if (t.role == Role::activation)
      tiles +=
          static_cast<double>(ceil_div(t.rows, 128)) * static_cast<double>(ceil_div(t.cols, 128));
  return tiles;
}

bool can_simulate(const Selection& selection, const std::string& policy,
                  std::int64_t Workload::*field, std::int64_t size) {
  Selection s = selection;
  s.workload.*field = size;
  return walk_size(plan_of(s, policy)).fits();
}

// The largest size of that field that fits; 0 when none does. `too_large` does not fit.
std::int64_t largest(const Selection& s, const std::string& policy, std::int64_t Workload::*field,
                     std::int64_t too_large) {
  const bool is_context = field == &Workload::context;
  std::int64_t least = is_context ? s.workload.seq : 1;
  if (!can_simulate(s, policy, field, least)) return 0;
  std::int64_t most = too_large;
  while (most - least > 1) {
    const std::int64_t middle = least + (most - least) / 2;
    (can_simulate(s, policy, field, middle) ? least : most) = middle;
  }
  return least;
}

}  // namespace

void check_simulation_size(const Selection& s, const std::optional<std::string>& scenario_path) {
  if (s.fidelity == Fidelity::roofline || rough_tiles(s.model, s.workload) < kSmall) return;
  for (const std::string& policy : s.policies) {
    const WalkSize size = walk_size(plan_of(s, policy));
    if (size.fits()) continue;
    const bool decode = s.workload.phase == Phase::decode;
    const char* name = decode ? "context" : "seq";
    auto field = decode ? &Workload::context : &Workload::seq;
    std::int64_t most = largest(s, policy, field, s.workload.*field);
    if (most == 0) {
      name = "batch";
      field = &Workload::batch;
      most = largest(s, policy, field, s.workload.*field);
    }
    throw InputError(
        {.file = scenario_path ? *scenario_path + " with the command line" : "command line",
         .field = (scenario_path ? "" : "--") + std::string(name),
         .value = std::to_string(s.workload.*field),
         .message = fmt::format("{} has {}: more than can be simulated in about a minute", policy,
                                describe(size)),
         .allowed = fmt::format("{}fewer sequences, other policies, or --fidelity roofline",
                                most == 0 ? "" : fmt::format("at most {} here, ", most))});
  }
}

}  // namespace fuseline
