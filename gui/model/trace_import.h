// A profiler's trace beside the session's block: which launch is which kernel of a plan, what each
// took, and what belongs to none.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/latest_wins.h"
#include "gui/model/subject.h"
#include "gui/model/table.h"
#include "sim/traces/traced_block.h"

namespace fuseline::gui {

struct TraceRequest {
  std::string file;
  Setup setup;
  std::string policy{};  // whose plan the trace is of; empty: the one that fits best
  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

// Reads the trace and matches it: seconds where it is large and every policy is tried. InputError:
// no trace, a block that no policy has a plan of. Cancelled, between two plans.
std::shared_ptr<const TracedBlock> import_trace(const TraceRequest& request,
                                                const std::stop_token& stop = {},
                                                const Progress& progress = {});

struct TraceRow {
  std::string kernel;
  KernelKind kind = KernelKind::pointwise;
  Seconds predicted;
  std::optional<SpreadOfTimes> measured;
  std::size_t launches = 0;
  std::string by;                  // what most of its launches were matched by: "name", "order"
  std::vector<std::string> names;  // of its launches
  Bytes predicted_hbm;
  std::optional<Bytes> measured_hbm;
};

// Launches of the block that no kernel of the plan is.
struct TraceRest {
  std::string name;
  std::size_t launches = 0;
  Seconds time;
  double share = 0;  // of the block's time
};

// One launch of the block, in order.
struct TraceLaunch {
  std::string name;
  Seconds time;
  std::optional<std::size_t> kernel;  // of TraceChart::rows
  std::string by;                     // "name", "hand"
};

struct TraceChart {
  std::string title;   // "torch-compile matches best: 9 launches a block, 22 blocks"
  std::string judged;  // "predicted 152.1 µs, measured 160.2 µs with a kernel running: −5.1 %"
  std::string judged_short;  // "predicted 152.1 µs, measured 160.2 µs: −5.1 %"
  // Why the trace is not of these sizes: then no error is drawn, as there is nothing to compare.
  std::string doubt;
  std::vector<TraceRow> rows;
  std::vector<TraceRest> rest;
  std::vector<TraceLaunch> launches;
  std::vector<std::string> notes;
  Subject about{};     // of the predictions
  Subject measured{};  // of the times
};
TraceChart trace_chart(const TracedBlock& traced, const Setup& setup);
// The kernels, and what belongs to none.
std::vector<Table> to_tables(const TraceChart& chart);

// These launches, by their places in TraceChart::launches, are that kernel of TraceChart::rows;
// empty: they are none of the plan's.
std::shared_ptr<const TracedBlock> match_by_hand(const TracedBlock& traced,
                                                 const std::vector<std::size_t>& launches,
                                                 std::optional<std::size_t> kernel);

// Writes it as a measurement folder in `under`, with a name of its own, and returns that.
std::filesystem::path keep_trace(const TracedBlock& traced, const std::filesystem::path& under);

}  // namespace fuseline::gui
