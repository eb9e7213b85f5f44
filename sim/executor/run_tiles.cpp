#include <algorithm>

#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

namespace {

// `whole`: tiles hold all columns.
void run_space(const RunContext& context, const RowMainloop& space, bool whole) {
  const std::vector<Primitive>& body = context.program.body;
  const TileShape tile = context.schedule.tile;
  const std::int64_t rows = space.rows;
  const std::int64_t cols = space.cols;
  const ValueAnalysis layout(body, -1, cols, whole, {}, space.heads);
  PartialSums partials;
  std::vector<TileInterpreter> interpreters;
  for (int t = 0; t < context.workers.threads; ++t)
    interpreters.emplace_back(body, layout, partials, context.fault_in(false));

  const std::int64_t across = ceil_div(cols, tile.n);
  const Loop loop{ceil_div(rows, tile.m) * across,
                  static_cast<double>(rows * cols) * static_cast<double>(body.size())};
  parallel_for(context.workers, loop, [&](std::int64_t index, int thread) {
    TileArea area;
    area.row_tile = index / across;
    area.col_tile = index % across;
    area.row_begin = area.row_tile * tile.m;
    area.row_end = std::min(rows, area.row_begin + tile.m);
    area.columns = {area.col_tile * tile.n, std::min(cols, (area.col_tile + 1) * tile.n)};
    area.height = rows;
    area.heads = space.heads;
    area.tokens = space.tokens;
    TileInterpreter& interpreter = interpreters[static_cast<std::size_t>(thread)];
    interpreter.begin(area);
    interpreter.run(context.port(thread), {}, true);
  });
  partials.finish(context.port(0));
}

}  // namespace

void run_tiles(const RunContext& context, const StreamMainloop& mainloop) {
  run_space(context, {mainloop.rows, mainloop.cols}, false);
}

void run_tiles(const RunContext& context, const RowMainloop& mainloop) {
  run_space(context, mainloop, true);
}

}  // namespace fuseline::executor
