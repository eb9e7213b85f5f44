// The details strip: everything exact about one thing, and where the machine's numbers come from.
#pragma once

#include <string>
#include <vector>

#include "gui/model/hardware_constants.h"
#include "gui/model/results.h"
#include "gui/model/selection.h"

namespace fuseline::gui {

struct DetailLine {
  std::string name;   // "read from HBM, coda"
  std::string value;  // "1,119,223,808 bytes"
};

struct Details {
  std::string title;  // "operator gate_up"
  std::vector<DetailLine> lines;
  std::vector<HardwareConstant> constants;  // that the thing's numbers rest on
};

// Empty title when the thing is nothing, or gone. Constants are of the baseline's GPU, or of the
// kernel's run.
Details details_of(const Results& results, const Thing& thing);

}  // namespace fuseline::gui
