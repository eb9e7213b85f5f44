// Fuse or not: for each edge of a block and for whole policies, what the fusion gains, how sure
// that is, the size at which it turns, and what limits it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/custom_fusion.h"
#include "sim/report/prediction.h"
#include "sim/sure/band.h"
#include "sim/verdict/limit.h"
#include "sim/verdict/turning.h"

namespace fuseline {

// Time without over time with, and whether that is a gain.
struct FusionGain {
  Seconds without, with;
  Band band{};          // of the gain
  std::string verdict;  // "faster", "slower", "too close to call", "the same"

  [[nodiscard]] double gain() const { return without / with; }
};

// How the gain changes with one size of the workload, the others as asked.
struct SizeTurning {
  std::string letter;  // "M" (batch times tokens), "batch", "context"
  Turning turning;
};

struct EdgeVerdict {
  OnChipEdge edge;
  std::string tensor;
  bool kept = false;               // the base plan has it on chip
  std::string rewrite{};           // that makes it possible, on top of the base's
  std::optional<FusionGain> gain;  // empty: it cannot be kept on chip
  Seconds saved{}, added{};        // of the operators' kernels: what the edge spares and costs
  double hbm_bytes = 0;            // with it less without it
  FusionLimit limit;
  std::vector<SizeTurning> turnings{};
};

struct PolicyVerdict {
  std::string policy;
  FusionGain gain;
  std::int64_t launches = 0;
  FusionLimit limit;
  std::vector<SizeTurning> turnings{};
};

struct BlockVerdict {
  std::string on;     // the policy on top of which edges are chosen
  Seconds time;       // of that policy
  CustomFusion base;  // its choices, as `custom` makes them
  Seconds base_time;  // of these: what `custom` cannot express of a policy is the difference
  std::vector<EdgeVerdict> edges;       // in the order of the graph
  std::vector<PolicyVerdict> policies;  // but `on`
};

struct VerdictOptions {
  std::string on = "per-operator";
  std::vector<std::string> policies{};
  bool turnings = true;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t done, std::size_t count)> progress{};
};

// Of the case's block, at fidelity hierarchy. InputError: an unknown policy, one that does not
// train where training is asked for. Empty when it was stopped.
std::optional<BlockVerdict> verdict_of_block(const PredictionCase& c,
                                             const VerdictOptions& options);

// Sizes within which a turning is looked for: of M from a 64th to 16 times, of decode's batch and
// context likewise, and no further than a block is simulated in about a second.
struct SizeAxis {
  std::string letter;
  SizeRange range;
};
std::vector<SizeAxis> axes_of(const Workload& workload);
// The workload with that size on the axis.
Workload at_size(Workload workload, const std::string& letter, std::int64_t size);

}  // namespace fuseline
