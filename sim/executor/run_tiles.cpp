#include <algorithm>

#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

void run_tiles(const RunContext& context, std::int64_t rows, std::int64_t cols, bool whole) {
  const std::vector<Primitive>& body = context.program.body;
  const TileShape tile = context.schedule.tile;
  const ValueLayout layout(body, -1, cols, whole);
  PartialSums partials;
  std::vector<TileInterpreter> interpreters;
  for (int t = 0; t < context.workers.threads; ++t)
    interpreters.emplace_back(body, layout, partials, context.fault_in(false));

  const std::int64_t across = ceil_div(cols, tile.n);
  parallel_for(
      context.workers, ceil_div(rows, tile.m) * across, [&](std::int64_t index, int thread) {
        TileArea area;
        area.row_tile = index / across;
        area.col_tile = index % across;
        area.row_begin = area.row_tile * tile.m;
        area.row_end = std::min(rows, area.row_begin + tile.m);
        area.columns = {area.col_tile * tile.n, std::min(cols, (area.col_tile + 1) * tile.n)};
        area.height = rows;
        TileInterpreter& interpreter = interpreters[static_cast<std::size_t>(thread)];
        interpreter.begin(area);
        interpreter.run(context.port(thread), {}, true);
      });
  partials.finish(body, context.port(0));
}

}  // namespace fuseline::executor
