// Measuring from the window: the command that does it, here or on another machine, and what it has
// said so far beside what was predicted.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/results.h"
#include "gui/model/table.h"
#include "sim/measured/measuring_lines.h"

namespace fuseline::gui {

// A prediction that the command measures.
struct LiveRun {
  RunId run{};
  std::string label;
  Seconds predicted;
  Bytes predicted_hbm;
  BlockCase block;
  Subject about{};
};

struct LiveRequest {
  std::string shell;  // for `sh -c`
  std::vector<LiveRun> runs;
  std::string problem{};  // instead: why nothing can be measured
  std::string note{};     // what is left out, and why
};

// `command`: what starts fuseline, "fuseline", or on another machine "ssh box fuseline {}". In the
// place of {} go all arguments as one word, which the other machine's shell takes apart again;
// without {} they follow as words. Measured are the policies of all predictions that follow the
// session's setup.
LiveRequest live_request(const Document& document, const Results& results,
                         const std::string& command);

struct LiveRow {
  LiveRun run;
  std::optional<MeasuredBlock> measured;
};
struct LiveChart {
  std::string title;   // "llama2-7b forward 1x2048, measured while it runs"
  std::string status;  // "coda: timing, 42 %"
  bool failed = false;
  std::vector<LiveRow> rows;
  std::string problem;
};
LiveChart live_chart(const LiveRequest& request, const Measuring& measuring, bool running);
Table to_table(const LiveChart& chart);

// Why the command ended without a measurement: its own reason, else the last that it said.
std::string reason_of_failure(const Measuring& measuring, const std::string& errors, int status);

// A folder of the session's measurement that is not there yet, in `under`, which is made:
// "llama2-7b-forward-2".
std::filesystem::path folder_for_measured(const std::filesystem::path& under,
                                          const LiveRequest& request);

// A name in the folder that nothing has yet: the stem, "stem-2".
std::filesystem::path fresh_folder(const std::filesystem::path& under, const std::string& stem);

}  // namespace fuseline::gui
