// What `import trace` is asked for: a profiler's file beside the plans of one block.
#pragma once

#include <functional>
#include <string>

#include "sim/selection/selection.h"
#include "sim/traces/matched_trace.h"

namespace fuseline {

struct TracedBlock {
  Selection selection;
  LaunchList list;
  CandidatePlan plan;  // that explains the trace best
  MatchedTrace trace;
  bool chosen = false;  // among several policies

  // What the launches of one block took: with a kernel running where the tool ran them in place,
  // and otherwise their sum.
  [[nodiscard]] Seconds measured_time() const;
  // Why the trace is not, or hardly, of this block: faster than any implementation can be, or twice
  // as slow or as fast as predicted. Empty where it may be.
  [[nodiscard]] std::string doubt() const;

  [[nodiscard]] BlockCase block() const;
  // What `compare` reads, without what the file does not say.
  [[nodiscard]] Measurements measurements() const;
};

// Without a policy in `words`, all of the phase are tried. InputError: as read_launches and
// resolve_selection; a policy that was named and has no plan of the block.
TracedBlock match_traced_block(const std::string& file, const SelectionWords& words,
                               const std::function<void(const std::string&, double)>& progress);

// The same beside the plans of a selection that was resolved before. `named`: its policies are
// those that somebody chose, so none of them may be without a plan.
TracedBlock match_traced_block(const std::string& file, Selection selection, bool named,
                               const std::function<void(const std::string&, double)>& progress);

inline constexpr const char* kTraceSchema = "fuseline.trace/1";
std::string traced_block_json(const TracedBlock& traced);

}  // namespace fuseline
