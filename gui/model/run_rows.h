// The list of runs as it is shown: numbers, differences to the baseline, problems.
#pragma once

#include <string>
#include <vector>

#include "gui/model/delta.h"
#include "gui/model/document.h"
#include "gui/model/results.h"
#include "gui/model/roles.h"

namespace fuseline::gui {

struct RunRow {
  RunId id{};
  std::string name;
  std::string label;  // the name, with the machine where runs differ in theirs
  Colour colour;
  bool is_baseline = false;
  bool measured = false;
  bool custom = false;
  bool pinned = false;
  std::string machine;          // model, GPU, phase and sizes in a line
  std::string time;             // "1527.6 µs"
  std::string hbm;              // "1.91 GB"; empty where not counted
  std::string launches;         // "21"
  Delta time_delta, hbm_delta;  // texts are empty for the baseline and where one side is not known
  std::string
      note;  // "replays beside replays", another machine than the baseline's, or the problem
  bool has_problem = false;
  bool missing = false;  // the problem is something that is not here yet: what to do is said
  std::string tooltip;   // exact numbers, and where a measurement comes from
};

// In the document's order. Runs without a result yet have their names only.
std::vector<RunRow> run_rows(const Document& document, const Results& results);

}  // namespace fuseline::gui
