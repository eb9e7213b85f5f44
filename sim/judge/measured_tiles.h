// The tiles that measured GEMMs ran with. What is predicted beside a measurement takes them, not
// those that the tool would choose today.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/gemm_tile.h"
#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/measured/measurement.h"

namespace fuseline {

// "128x256x64" → its edges along tokens, output features and K; nothing for another text.
std::optional<TileEdges> tile_edges(const std::string& text);

class MeasuredTiles {
 public:
  MeasuredTiles() = default;
  explicit MeasuredTiles(const Measurements& measurements);

  // Sets `ran` of the plan's kernels that have a row with a tile in the block's trace, and
  // `ran_group` of all where the measurement says how tiles were swept.
  void give_to(Plan& plan, const BlockCase& block) const;
  [[nodiscard]] Launching launching() const { return launching_; }

 private:
  std::map<std::string, std::map<std::string, TileEdges>> by_block_;  // label, then kernel
  std::optional<std::int64_t> group_;
  Launching launching_ = Launching::graph;
};

}  // namespace fuseline
