#include "sim/judge/measured_tiles.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace fuseline {

std::optional<TileEdges> tile_edges(const std::string& text) {
  std::array<std::int64_t, 3> edges{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) return std::nullopt;
    const auto [behind, error] = std::from_chars(at, end, edges[i]);
    if (error != std::errc() || edges[i] <= 0) return std::nullopt;
    at = behind;
  }
  if (at != end) return std::nullopt;
  return TileEdges{edges[0], edges[1], edges[2]};
}

MeasuredTiles::MeasuredTiles(const Measurements& measurements)
    : group_(measurements.meta.raster_clusters) {
  if (!measurements.meta.launches.empty()) launching_ = Launching::overlap;
  for (const MeasuredTrace& trace : measurements.traces) {
    for (const MeasuredKernel& kernel : trace.kernels) {
      const std::optional<TileEdges> edges = tile_edges(kernel.tile);
      if (edges) by_block_[trace.block.label()].try_emplace(kernel.site, *edges);
    }
  }
}

void MeasuredTiles::give_to(Plan& plan, const BlockCase& block) const {
  for (Kernel& kernel : plan.kernels) kernel.ran_group = group_;
  const auto tiles = by_block_.find(block.label());
  if (tiles == by_block_.end()) return;
  for (Kernel& kernel : plan.kernels) {
    const auto tile = tiles->second.find(kernel.name);
    if (tile != tiles->second.end()) kernel.ran = tile->second;
  }
}

}  // namespace fuseline
