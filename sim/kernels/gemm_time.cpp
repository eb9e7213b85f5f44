#include "sim/kernels/gemm_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>

#include "base/error.h"
#include "sim/gpu/code_rate.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/codes_time.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/operand_rows.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {
namespace {

constexpr std::int64_t kOddCluster = 3;    // blocks of our own mainloop's clusters along K
constexpr std::int64_t kSlabColumns = 64;  // that an epilogue of ours takes at a time

// Tensor rate of one SM at the boost clock for the operands' width (fp32 operands run as TF32). The
// fractions for codes are those of PyTorch's kernels. Our own mainloop has the same part of the
// rate for e4m3 as for bf16: on one H200 2,048 x 12,288 x 4,096 took 142.9, 144.7 and 149.0 us in
// tiles of 128 x 256, 192 and 128 (codes_bench, 2026-11-26; so predicted: 143.4, 143.9 and 146.1).
double sm_tensor_rate(const GemmProblem& problem, const Gpu& gpu) {
  const ElementSize element = std::max(problem.a.matrix.element, problem.b.matrix.element);
  double rate = gpu.tensor_bf16.value();
  if (problem.activation.quantised()) {
    const GemmConstants& c = gpu.constants.gemm;
    const Dtype codes = problem.activation.element();
    rate = code_rate(gpu, codes).value();
    if (problem.library || !multiplies_codes(problem.weight, problem.activation))
      rate *= codes == Dtype::int8 ? c.int8_fraction : c.fp8_fraction;
  }
  if (element >= 4) rate = gpu.tensor_bf16.value() * gpu.constants.gemm.tf32_fraction;
  return rate / static_cast<double>(gpu.sm_count);
}

// Instructions of one k step of a tile that are no matrix products. Weights in few bits beside
// numbers are dequantised. Sums of products of codes are rescaled where their scales change along
// the row; a scale of a whole row waits for the epilogue.
double converted(const GemmProblem& problem, const GemmTile& tile, const GemmConstants& constants) {
  const auto weights = static_cast<double>(tile.k * tile.n);
  if (!problem.weight.quantised()) return 0;
  if (!problem.activation.quantised()) return weights * constants.dequantise_instructions;
  if (!problem.activation.scaled_within_rows()) return 0;
  const auto group = static_cast<double>(problem.activation.group);
  return weights * static_cast<double>(tile.m) / group * constants.rescale_instructions;
}

// Instructions of our own mainloop for each sum of products of codes: it is multiplied by the scale
// of its row and by that of its column (cuda/kernels/sm90/sum_scales.cuh).
double scaling(const GemmProblem& problem) {
  return multiplies_codes(problem.weight, problem.activation) ? 2 : 0;
}

// Share of the clusters along M one of whose thread blocks has no rows of its group.
double idle_share(const GemmProblem& problem, const GemmTile& tile) {
  const std::int64_t rows_of_cluster = tile.m * tile.cluster_m;
  std::int64_t clusters = 0, idle = 0;
  for (const std::int64_t rows : problem.groups) {
    const std::int64_t of_group = ceil_div(rows, rows_of_cluster);
    clusters += of_group;
    if (of_group * rows_of_cluster - rows >= tile.m) ++idle;
  }
  return clusters == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(clusters);
}

// Bytes a cycle that operands come with from L2 into one SM: the mean over the clusters' times.
double fetch_rate(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  const GemmConstants& constants = gpu.constants.gemm;
  if (fetches_by_elements(problem, gpu)) return constants.unaligned_bytes_per_cycle;
  if (tile.fetch_bytes_per_cycle == 0) return constants.sm_fetch_bytes_per_cycle;
  if (tile.idle_fetch_bytes_per_cycle == 0) return tile.fetch_bytes_per_cycle;
  const double idle = idle_share(problem, tile);
  return 1 / (idle / tile.idle_fetch_bytes_per_cycle + (1 - idle) / tile.fetch_bytes_per_cycle);
}

// Rates that do not change from wave to wave.
struct WaveModel {
  double step_seconds;            // one k step of one tile on the tensor cores
  double fetch_seconds;           // its panels from L2 into shared memory
  double smem_seconds;            // and from there to the tensor cores
  double absent_row_seconds = 0;  // zeros for one row that the matrix does not have
  bool hides_zeros = false;       // behind the tensor cores, also a panel of nothing else
  double convert_seconds;         // the instructions that dequantise a panel of b, or rescale sums
  double sm_epilogue_rate;        // bytes/s of one SM
  double l2_rate;
  double l2_requests = 1;  // for operands, as many bytes that begin at a line cost as much
  double hbm_rate;
  double concurrency;
  double overlap;
  double needed_streams;            // for the full HBM rate
  double cluster_k;                 // thread blocks for one epilogue
  double sums_rate;                 // bytes/s of one SM, of sums of parts of a tile
  double meeting_seconds;           // of parts of tiles that are added up together
  double last_meeting_seconds = 0;  // of all thread blocks, behind their own parts
  double exchange_seconds = 0;      // of clusters along K: their start, end and partial sums
  double issue_seconds = 0;         // the instructions of the epilogue's functions of a tile
  double hidden_fetches = 0;        // of what the producer fetches for the epilogue
  double turn_seconds = 0;          // of a turned tile's sums, in fp32, once through shared memory
  double table_seconds = 0;         // until the first tile's tables are there, slab after slab

  WaveModel(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu, double clock_factor) {
    const GemmConstants& constants = gpu.constants.gemm;
    const double clock = gpu.sm_clock.value() * clock_factor;
    const ElementSize a_bytes = problem.a.matrix.element;
    const ElementSize b_bytes = problem.b.matrix.element;
    const double flops = 2.0 * static_cast<double>(tile.m * tile.n * tile.k);
    // Our own mainloop loads no rows of a low tile that the matrix does not have. Of a high one it
    // asks for them, and zeros come.
    const std::int64_t a_rows =
        problem.library ? tile.m : own_loaded_rows(tile.m, problem.typical_rows());
    if (!problem.library && has_feature(gpu, Feature::bulk_copy))
      absent_row_seconds =
          static_cast<double>(tile.k * a_bytes) / (constants.absent_bytes_per_cycle * clock);
    const auto weights = static_cast<double>(tile.k * tile.n);
    const double panel =
        static_cast<double>(tile.k * a_rows * a_bytes + tile.k * tile.n * b_bytes) +
        weights * problem.weight.scale_bytes_per_element(problem.k) +
        static_cast<double>(tile.k * a_rows) *
            problem.activation.scale_bytes_per_element(problem.k);
    convert_seconds =
        converted(problem, tile, constants) / (gpu.constants.stream.issue_lanes * clock);
    step_seconds =
        flops / (sm_tensor_rate(problem, gpu) * clock_factor * constants.tensor_fraction);
    fetch_seconds = panel / (fetch_rate(problem, tile, gpu) * clock);
    hides_zeros = fetch_seconds + static_cast<double>(tile.m) * absent_row_seconds <=
                  step_seconds * constants.tensor_fraction;
    smem_seconds = panel / (static_cast<double>(gpu.smem_bytes_per_clock) * clock);
    sm_epilogue_rate = clock * (problem.library ? constants.epilogue_bytes_per_cycle
                                                : constants.exposed_epilogue_bytes_per_cycle);
    sums_rate = clock * constants.sums_bytes_per_cycle;
    meeting_seconds = constants.parts_meet.value();
    if (tile.tail_parts > 1 && adds_together(problem))
      last_meeting_seconds = (constants.parts_meet_all - constants.parts_meet).value();
    l2_rate = gpu.l2_bandwidth.value() * clock_factor *
              (problem.library ? constants.l2_fraction : constants.own_l2_fraction);
    l2_requests = 1 + constants.second_line_cost * crossing_rows(problem, tile, gpu);
    hbm_rate = gpu.hbm_bandwidth_sustained.value() * constants.hbm_fraction;
    concurrency = constants.concurrency_exponent;
    overlap = constants.overlap_exponent;
    needed_streams = gpu.hbm_bandwidth_sustained.value() / (constants.stream_gb_per_s * 1e9);
    cluster_k = static_cast<double>(tile.cluster_k);
    if (!problem.library && tile.turned() && !problem.needs.only_stores)
      turn_seconds =
          static_cast<double>(2 * 4 * tile.m * tile.n) / (constants.turn_bytes_per_cycle * clock);
    if (!problem.library && problem.needs.loads_tables)
      table_seconds = static_cast<double>(ceil_div(std::min(problem.n, tile.n), kSlabColumns)) *
                      gpu.constants.stream.ramp.value();
    if (!problem.library && has_feature(gpu, Feature::bulk_copy))
      hidden_fetches = 1 - constants.exposed_fetch_fraction;
    if (!problem.library)
      issue_seconds =
          static_cast<double>(tile.m * std::min(problem.n, tile.n)) *
          (problem.needs.instructions + scaling(problem)) /
          (gpu.constants.stream.issue_lanes * constants.epilogue_issue_fraction * clock);
    // fp32, of whole warps of 16 rows, through the port that operands come through.
    const std::int64_t rows = std::min(tile.m, ceil_div(problem.typical_rows(), 16) * 16);
    if (tile.cluster_k > 1)
      exchange_seconds = constants.cluster_wave.value() +
                         static_cast<double>((tile.cluster_k - 1) * rows * tile.n * 4) /
                             (constants.sm_fetch_bytes_per_cycle * clock);
  }
};

struct WaveTime {
  double tensor, fetch, l2, hbm, smem, convert, epilogue;
  double mainloop;  // of all of them together
  Bound bound;
};

// Of parts that disturb each other when they are near balance.
double together(std::initializer_list<double> parts, double overlap) {
  constexpr double kNegligible = 0.01;  // of the longest part; its power is next to nothing
  const double top = std::max(parts);
  if (top <= 0) return 0;
  double sum = 0;
  for (const double part : parts) {
    if (part > kNegligible * top) sum += part == top ? 1.0 : std::pow(part / top, overlap);
  }
  return top * std::pow(sum, 1.0 / overlap);
}

WaveTime time_of(const GemmWave& wave, const WaveModel& model) {
  const double steps = static_cast<double>(wave.k_steps);
  const double blocks = static_cast<double>(wave.blocks);
  // Thread blocks that load the same panels wait for the same bytes, and what L2 holds comes from
  // there: only what is distinct and missed keeps HBM busy.
  // Groups without rows load nothing and store zeros, each block its own.
  const Bytes streamed = std::min(wave.distinct, wave.hbm.read);
  const double own = wave.operands > Bytes()
                         ? std::min(1.0, streamed.as_double() / wave.operands.as_double())
                         : 1.0;
  const double busy = std::min(1.0, blocks * own / model.needed_streams);
  const double reads = busy > 0 ? wave.hbm.read.as_double() / std::pow(busy, model.concurrency) : 0;
  WaveTime t{};
  t.tensor = steps * model.step_seconds;
  t.fetch = steps * model.fetch_seconds;
  t.smem = steps * model.smem_seconds;
  t.convert = steps * model.convert_seconds;
  t.l2 =
      (wave.operands.as_double() * model.l2_requests + wave.epilogue.as_double()) / model.l2_rate;
  // Few thread blocks have few loads under way. What L2 writes back waits for none of them.
  t.hbm = (reads + wave.hbm.write.as_double()) / model.hbm_rate;
  const double exposed = (wave.block_epilogue - wave.block_sums).as_double() -
                         model.hidden_fetches * wave.block_fetched.as_double();
  t.epilogue = exposed / model.sm_epilogue_rate + model.exchange_seconds + model.issue_seconds +
               model.turn_seconds;
  if (wave.block_sums > Bytes())
    t.epilogue += wave.block_sums.as_double() / model.sums_rate + model.meeting_seconds;
  // Tensor cores, fetching, HBM and dequantising disturb each other when they are near balance; L2
  // and shared memory are ceilings only. An SM that dequantises keeps its tensor cores waiting.
  double top = t.tensor;
  t.bound = Bound::tensor;
  if (t.fetch > top) top = t.fetch, t.bound = Bound::l2;
  if (t.hbm > top) top = t.hbm, t.bound = Bound::hbm;
  if (t.convert > top) top = t.convert, t.bound = Bound::tensor;
  t.mainloop = together({t.tensor, t.fetch, t.hbm, t.convert}, model.overlap);
  // Zeros come before the data behind them. Thread blocks whose panels have them are late, and the
  // others wait for their neighbours or at the kernel's end. What HBM takes hides less of it than
  // of data. Tensor cores that would work longer on a panel even at their full rate hide it.
  if (wave.absent_rows > 0 && !model.hides_zeros) {
    const double zeros = steps * static_cast<double>(wave.absent_rows) * model.absent_row_seconds;
    const double late = std::hypot(t.fetch + zeros, t.hbm);
    if (late > t.mainloop)
      t.mainloop = late, t.bound = t.hbm > t.fetch + zeros ? Bound::hbm : Bound::l2;
  }
  if (t.l2 > t.mainloop) t.mainloop = t.l2, t.bound = Bound::l2;
  if (t.smem > t.mainloop) t.mainloop = t.smem, t.bound = Bound::smem;
  return t;
}

}  // namespace

GemmTime time_gemm(const GemmProblem& problem, const GemmTile& tile,
                   const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor) {
  FUSELINE_ASSERT(clock_factor > 0 && clock_factor <= 1, "clock factor");
  if (tile.dequantises) return time_codes(problem, tile, waves, gpu, clock_factor);
  const WaveModel model(problem, tile, gpu, clock_factor);
  GemmTime result;
  const auto launches = static_cast<double>(problem.launches());
  const Seconds start = std::max(
      Seconds(), gpu.constants.gemm.start -
                     gpu.constants.gemm.hot_start * (waves.empty() ? 0.0 : waves.front().found));
  result.launch = launches * (gpu.tiny_kernel + start) + (launches - 1) * gpu.constants.launch.gap;
  result.time = result.launch;
  std::array<double, 6> set_by{};  // seconds by Bound
  set_by[static_cast<std::size_t>(Bound::launch)] = result.launch.value();
  const Seconds once(model.table_seconds + model.last_meeting_seconds);
  result.time += once;
  result.epilogue += once;
  for (const GemmWave& wave : waves) {
    const WaveTime t = time_of(wave, model);
    result.time += Seconds(t.mainloop + t.epilogue);
    result.tensor += Seconds(t.tensor);
    result.l2 += Seconds(std::max(t.l2, t.fetch));
    result.hbm += Seconds(t.hbm);
    result.smem += Seconds(t.smem);
    result.epilogue += Seconds(t.epilogue);
    set_by[static_cast<std::size_t>(t.bound)] += t.mainloop;
  }
  result.bound = static_cast<Bound>(
      std::distance(set_by.begin(), std::max_element(set_by.begin(), set_by.end())));
  return result;
}

std::vector<WaveSpan> wave_spans(const GemmProblem& problem, const GemmTile& tile,
                                 const std::vector<GemmWave>& waves, const Gpu& gpu) {
  const WaveModel model(problem, tile, gpu, 1.0);
  std::vector<WaveSpan> spans;
  spans.reserve(waves.size());
  for (const GemmWave& wave : waves) {
    const WaveTime t = time_of(wave, model);
    spans.push_back(
        {Seconds(t.mainloop), Seconds(t.epilogue + (spans.empty() ? model.table_seconds : 0.0))});
  }
  if (!spans.empty()) spans.back().epilogue += Seconds(model.last_meeting_seconds);
  return spans;
}

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
    const WaveTime t = time_of(wave, model);
    return t.mainloop + t.epilogue;
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
  if (full > late_full)
    seconds += static_cast<double>(full - late_full) * wave_of(at_once, 1, false);
  if (late_full > 0) seconds += static_cast<double>(late_full) * wave_of(at_once, 1, true);
  const std::int64_t parts = tile.tail_parts;
  if (rest > 0) seconds += model.last_meeting_seconds;
  for (std::int64_t left = rest * parts; left > 0; left -= at_once)
    seconds += wave_of(std::min(left, at_once), parts, true);
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

Bytes hbm_bytes_of_step(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (tile.dequantises) return Bytes();
  const WaveModel model(problem, tile, gpu, 1.0);
  return Bytes(static_cast<std::int64_t>(
      std::max({model.step_seconds, model.fetch_seconds, model.convert_seconds}) * model.hbm_rate));
}

Seconds reduction_time(Bytes l2, Bytes hbm, const Gpu& gpu) {
  const GemmConstants& constants = gpu.constants.gemm;
  return gpu.tiny_kernel + constants.reduction +
         std::max(l2 / (gpu.l2_bandwidth * constants.reduction_fraction),
                  hbm / (gpu.hbm_bandwidth_sustained * constants.hbm_fraction));
}

std::int64_t blocks_at_once(const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t cluster = tile.cluster();
  const GemmConstants& constants = gpu.constants.gemm;
  double fraction = cluster >= constants.packed_cluster ? constants.packed_fraction : 1.0;
  if (tile.cluster_k == kOddCluster) fraction = std::min(fraction, constants.odd_packed_fraction);
  const auto usable = static_cast<std::int64_t>(static_cast<double>(gpu.sm_count) * fraction);
  return std::max(cluster, tile.blocks_per_sm * usable / cluster * cluster);
}

}  // namespace fuseline
