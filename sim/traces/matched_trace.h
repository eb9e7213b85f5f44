// A profiler's trace beside a plan: which launches are one block, what each kernel of the plan
// took, and what of the time belongs to no kernel of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/measured/measurement.h"
#include "sim/traces/kernel_alignment.h"
#include "sim/traces/launch_list.h"

namespace fuseline {

// A plan that the trace may be of.
struct CandidatePlan {
  std::string policy;
  Plan plan;
  PlanEstimate estimate;
};

// One place of the block's list of launches; times over its repetitions.
struct MatchedLaunch {
  std::string name;
  LaunchShape shape;
  std::vector<double> each;  // seconds, of each repetition
  SpreadOfTimes time;
  std::optional<LaunchCounters> counters;  // medians
  std::optional<std::size_t> kernel;       // of the estimate
  MatchedBy by = MatchedBy::nothing;
};

// A kernel of the estimate, with the launches that are it.
struct MatchedPlanKernel {
  std::size_t launches = 0;
  SpreadOfTimes time;  // sums of its launches, over repetitions
  std::optional<LaunchCounters> counters;
};

// What moved a tensor, as far as counters tell: the bytes of each kernel, divided among its tensors
// as the prediction divides them.
struct TensorTraffic {
  std::string tensor;
  Bytes predicted_read, predicted_write, read, write;
};

// Other activity while the blocks ran, and launches that no kernel of the plan is: a repetition's
// share.
struct UnmatchedActivity {
  std::string name;
  std::size_t launches = 0;
  Seconds time;
  bool is_memory = false;  // a copy or a fill, which is no kernel's
};

struct MatchedTrace {
  std::string policy;
  std::vector<MatchedLaunch> launches;     // of one block, in order
  std::vector<MatchedPlanKernel> kernels;  // as in the estimate
  std::vector<UnmatchedActivity> unmatched;
  std::vector<TensorTraffic> tensors;  // empty without counters
  std::size_t repetitions = 0;
  SpreadOfTimes busy;  // of a block: some kernel ran
  SpreadOfTimes span;  // from its first launch to the end of its last
  Seconds whole;       // of all launches in the file
  Seconds elsewhere;   // of them, launches outside the block's repetitions
  std::string device;  // where the file names it
  std::vector<std::string> notes;

  [[nodiscard]] Seconds matched() const;  // medians of the kernels
};

// The plan of the candidates that explains the trace best, under the best cut of the trace into
// blocks; of several that do so equally well, the first. `progress`: which candidate, and the share
// done. The candidates must not be empty.
MatchedTrace match_trace(const LaunchList& list, const std::vector<CandidatePlan>& candidates,
                         const std::function<void(const std::string&, double)>& progress = {});

// As a measurement's tables hold it. Times are those without counters where the tool ran the
// kernels in place.
MeasuredTrace measured_trace(const MatchedTrace& trace, const LaunchList& list,
                             const CandidatePlan& plan, const BlockCase& block);
std::optional<MeasuredBlock> measured_block(const MatchedTrace& trace, const LaunchList& list,
                                            const BlockCase& block);

}  // namespace fuseline
