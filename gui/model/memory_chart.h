// The memory hierarchy: registers, shared memory, L2, HBM, with what goes between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"

namespace fuseline::gui {

struct MemoryBox {
  MemoryLevel level = MemoryLevel::hbm;
  std::string label;       // "L2"
  std::string capacity;    // "60 MiB", "132 × 228 KiB"
  double utilisation = 0;  // 0 to 1: its rate over the machine's; registers: FLOPs over the tensor
                           // peak at the clock that the block sustains
  std::string utilisation_text;  // "71 % of 4.80 TB/s"
  bool sets_time = false;        // the kernel is bound here, or most of the block's time is
  std::string tooltip;
  Colour colour;
  Thing thing;
};

struct MemoryArrow {
  MemoryLevel from = MemoryLevel::hbm;
  MemoryLevel to = MemoryLevel::l2;
  Bytes bytes{};
  BytesPerSecond rate;
  double width = 0;   // 0 to 1, by the root of the bytes over the widest arrow's
  std::string label;  // "1.41 GB · 925 GB/s"
  std::string tooltip;
  bool unknown = false;  // counters do not tell
};

struct MemoryChart {
  std::string title;                // "gate_up of coda", "coda: the block"
  std::vector<MemoryBox> boxes;     // registers first, HBM last
  std::vector<MemoryArrow> arrows;  // HBM to L2 and back; L2 with shared memory, and shared memory
                                    // with registers, both directions in one
  std::string problem;
  Subject about{};
};

// Of one launch of the run, or of the whole block.
MemoryChart memory_chart(const RunView& view, std::optional<std::size_t> kernel);
Table to_table(const MemoryChart& chart);

}  // namespace fuseline::gui
