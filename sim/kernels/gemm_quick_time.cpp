#include <algorithm>

#include "sim/kernels/codes_time.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/gemm_wave_time.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {

Seconds quick_gemm_time(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (tile.dequantises) return quick_codes_time(problem, tile, gpu);
  WaveModel model(problem, tile, gpu, 1.0);
  // Of tiles that take about as long, one that loads no zeros is chosen: with up to 64 rows the
  // fastest tile of 64 rows was faster than all higher ones at each of 35 sizes on an H100.
  model.hides_zeros = false;
  const std::int64_t m = problem.typical_rows();
  const std::int64_t products = problem.products();
  const std::int64_t unit_m = std::min(m, tile.m * tile.cluster_m);
  const std::int64_t unit_n = std::min(problem.n, tile.n * tile.cluster_n);
  const std::int64_t units =
      ceil_div(m, unit_m) * ceil_div(problem.n, unit_n) * products * tile.split_k;
  const std::int64_t at_once = blocks_at_once(tile, gpu) / tile.cluster();
  const ElementSize a_bytes = problem.a.matrix.element;
  const ElementSize b_bytes = problem.b.matrix.element;
  const double scales = problem.weight.scale_bytes_per_element(problem.k);
  const double row_scales = problem.activation.scale_bytes_per_element(problem.k);
  const std::int64_t whole_depth =
      ceil_div(ceil_div(problem.typical_depth(), tile.k), tile.split_k) * tile.k;

  // Of the epilogue streams: over the whole GEMM, of them what is stored, and per output element.
  std::int64_t out_bytes = 0, stored_bytes = 0, fetched_bytes = 0;
  double bytes_per_output = 0;
  const double outputs =
      static_cast<double>(m) * static_cast<double>(problem.n) * static_cast<double>(products);
  for (const EpilogueStream& stream : problem.epilogue) {
    const std::int64_t batches = stream.origins.empty() ? 1 : problem.batch;
    const std::int64_t elements =
        std::min({stream.matrix.rows * stream.matrix.cols, stream.height * stream.width * batches,
                  problem.m * problem.n * batches});
    const std::int64_t bytes = elements * stream.matrix.element;
    out_bytes += bytes;
    if (stream.store) stored_bytes += bytes;
    if (is_fetched(stream)) fetched_bytes += bytes;
  }
  bytes_per_output = tile.split_k > 1 ? 4.0 : static_cast<double>(out_bytes) / outputs;
  const double k = static_cast<double>(problem.typical_depth());
  const double compulsory_reads =
      static_cast<double>(products) * k *
          (static_cast<double>(m) * (a_bytes.as_double() + row_scales) +
           static_cast<double>(problem.n) * (b_bytes.as_double() + scales)) +
      static_cast<double>(out_bytes - stored_bytes);

  const auto sums = static_cast<double>(tile.m * tile.n * 4);  // of a part of a tile
  const std::int64_t group_tiles =
      raster_group(problem.library, tile, gpu.constants.gemm.raster_group_tiles);
  const std::int64_t full = units / at_once;
  const std::int64_t rest = units % at_once;
  // `parts` of K of each of the tiles; the first `count` of them all run.
  const std::int64_t absent = absent_rows(problem, tile, m);
  const auto wave_of = [&](std::int64_t count, std::int64_t parts, bool last_rows) {
    GemmWave wave;
    wave.absent_rows = last_rows ? absent : 0;
    const double share = static_cast<double>(count) / static_cast<double>(units * parts);
    const std::int64_t depth = ceil_div(ceil_div(whole_depth, tile.k), parts) * tile.k;
    wave.blocks = count * ceil_div(unit_m, tile.m) * ceil_div(unit_n, tile.n) * tile.cluster_k;
    wave.k_steps = ceil_div(ceil_div(depth, tile.k), tile.cluster_k);
    wave.operands =
        Bytes(count * depth * unit_m * a_bytes + count * depth * unit_n * b_bytes +
              static_cast<std::int64_t>(static_cast<double>(count * depth * unit_n) * scales +
                                        static_cast<double>(count * depth * unit_m) * row_scales));
    wave.epilogue = Bytes(
        static_cast<std::int64_t>(static_cast<double>(count * unit_m * unit_n) * bytes_per_output));
    wave.block_epilogue = Bytes(static_cast<std::int64_t>(
        static_cast<double>(std::min(unit_m, tile.m) * std::min(unit_n, tile.n)) *
        bytes_per_output));
    if (tile.split_k == 1)
      wave.block_fetched = Bytes(static_cast<std::int64_t>(
          static_cast<double>(std::min(unit_m, tile.m) * std::min(unit_n, tile.n)) *
          static_cast<double>(fetched_bytes) / outputs));
    // Of one product and split, the units that run together: a raster group high, or wide if
    // turned.
    // Parts of tiles read other steps of K.
    const std::int64_t slices = std::min(parts, ceil_div(count, std::max<std::int64_t>(1, rest)));
    const std::int64_t together = ceil_div(count, tile.split_k * products * slices);
    const bool groups_of_n = !problem.library && tile.turned();
    const std::int64_t group =
        std::max<std::int64_t>(1, group_tiles / (groups_of_n ? tile.cluster_n : tile.cluster_m));
    const std::int64_t along = ceil_div(
        together, std::min(group, groups_of_n ? ceil_div(problem.n, unit_n) : ceil_div(m, unit_m)));
    const std::int64_t across = ceil_div(together, along);
    const std::int64_t wide = groups_of_n ? across : along;
    const std::int64_t high = groups_of_n ? along : across;
    wave.distinct = Bytes(
        tile.split_k * products * slices * depth *
        (std::min(m, high * unit_m) * a_bytes + std::min(problem.n, wide * unit_n) * b_bytes));
    wave.hbm.read = Bytes(static_cast<std::int64_t>(compulsory_reads * share));
    wave.hbm.write = Bytes(static_cast<std::int64_t>(static_cast<double>(stored_bytes) * share));
    if (parts > 1 && adds_together(problem)) {
      // Its own part, a share of every part, and a share of the tile.
      wave.block_sums = Bytes(2 * tile.m * tile.n * 4);
      wave.block_epilogue =
          Bytes(2 * tile.m * tile.n * 4) + Bytes(wave.block_epilogue.value() / parts);
      wave.epilogue =
          Bytes(wave.blocks * 2 * tile.m * tile.n * 4) + Bytes(wave.epilogue.value() / parts);
    }
    WaveTime t = time_of(wave, model);
    if (parts > 1) t.hidden = 0;
    return t;
  };
  double seconds = (gpu.tiny_kernel + gpu.constants.gemm.start).value() + model.table_seconds;
  // The last rows are in the last raster group.
  const std::int64_t high = ceil_div(m, unit_m);
  const std::int64_t clusters_high =
      std::max<std::int64_t>(1, group_tiles / std::max<std::int64_t>(1, tile.cluster_m));
  const std::int64_t low = (high - 1) % clusters_high + 1;  // rows of clusters in that group
  const std::int64_t rounds = ceil_div(units, at_once);
  const std::int64_t late =
      absent == 0 ? rounds : std::min(rounds, ceil_div(ceil_div(units * low, high), at_once));
  const std::int64_t late_full = std::min(full, rest > 0 ? late - 1 : late);
  const std::int64_t parts = tile.tail_parts;
  double hidden = 0;  // of the latest round's epilogue, if there is another round
  const auto add = [&](std::int64_t rounds_alike, const WaveTime& t) {
    seconds += static_cast<double>(rounds_alike) * (t.mainloop + t.epilogue - t.hidden);
    hidden = t.hidden;
  };
  const auto add_rest = [&] {
    for (std::int64_t left = rest * parts; left > 0; left -= at_once)
      add(1, wave_of(std::min(left, at_once), parts, true));
  };
  if (rest > 0) seconds += model.last_meeting_seconds;
  if (parts > 1) add_rest();  // parts are ahead of whole tiles
  if (full > late_full) add(full - late_full, wave_of(at_once, 1, false));
  if (late_full > 0) add(late_full, wave_of(at_once, 1, true));
  if (parts == 1) add_rest();
  seconds += hidden + static_cast<double>(rounds - 1) * model.restart_seconds;
  // The sums of the parts of one tile are written together and read one after the other, where one
  // block adds up.
  if (rest > 0 && parts > 1 && !adds_together(problem))
    seconds += static_cast<double>(parts) * sums / model.sums_rate + 2 * model.meeting_seconds;
  if (tile.split_k > 1) {
    const Bytes partials(static_cast<std::int64_t>(outputs) * 4 * tile.split_k);
    seconds += reduction_time(partials, Bytes(), gpu).value();
  }
  return Seconds(seconds);
}

}  // namespace fuseline
