// Why a run takes as long as it does: what time is lost to which cause, in order of what can be
// recovered, each with the change that would recover it where there is one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/compute.h"
#include "gui/model/roles.h"
#include "gui/model/run_edits.h"
#include "gui/model/table.h"

namespace fuseline::gui {

enum class CauseKind : std::uint8_t {
  traffic,   // a tensor between two operators crosses HBM: fusing keeps it on chip
  policy,    // another policy of the list does better as a whole
  launches,  // gaps between kernels
  limit,     // nothing recovers it: the machine's own limit
};

struct Cause {
  CauseKind kind = CauseKind::traffic;
  std::string text;                  // "gate_up → swiglu crosses HBM"
  Seconds recovers;                  // of the block's time, by the simulation of the changed block
  Bytes hbm{};                       // less traffic
  std::optional<OnChipEdge> fuse{};  // the change: this edge
  std::optional<std::string> policy{};   // or this policy
  std::string change{};                  // "keep it on chip", "add a run under coda"; empty: none
  std::vector<std::string> operators{};  // whom it is about
};

struct Causes {
  RunId run{};
  std::string title;  // "Why eager takes 1527.6 µs"
  Seconds time;
  Seconds bound;  // no schedule of this block is faster
  std::vector<Cause> causes;
  std::string problem{};
  Subject about{};
};

// `run`: a prediction. Simulates the block once for each legal edge and each other policy, 10 to 20
// ms each, through the cache. Cancelled.
Causes causes_of(const Document& document, const RunView& run, ResultCache& cache,
                 const std::stop_token& stop = {}, const Progress& progress = {});

Table to_table(const Causes& causes);

}  // namespace fuseline::gui
