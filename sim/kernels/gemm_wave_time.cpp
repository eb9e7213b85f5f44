#include "sim/kernels/gemm_wave_time.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "sim/gpu/code_rate.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/operand_rows.h"
#include "sim/kernels/own_mainloop.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {
namespace {

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

// Until a stage that was asked for begins to come. Tiles in turns wait less for what others have
// asked for before.
Seconds stage_latency(const GemmProblem& problem, const GemmTile& tile,
                      const GemmConstants& constants) {
  if (!takes_turns(tile)) return constants.stage_latency;
  const auto m = static_cast<double>(problem.typical_rows());
  const auto n = static_cast<double>(problem.n);
  const auto high = static_cast<double>(ceil_div(problem.typical_rows(), tile.m * tile.cluster_m));
  const auto wide = static_cast<double>(ceil_div(problem.n, tile.n * tile.cluster_n));
  const double first = (m + n) / (m * wide + n * high);
  return first * constants.stage_latency + (1 - first) * constants.stage_latency_in_turns;
}

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

// Our own Hopper mainloop's rates in the place of the library's. Tensor cores are faster where
// others rest, and fastest where few work. A stage of the ring is asked for when it is free, comes
// after the latency, and is free again when it was multiplied.
void take_own_rates(WaveModel& model, const GemmProblem& problem, const GemmTile& tile,
                    const Gpu& gpu, double clock) {
  constexpr double kRequestBytes = 128;
  const GemmConstants& constants = gpu.constants.gemm;
  const StepRequests requests = step_requests(problem, tile);
  model.own = true;
  model.own_overlap = constants.own_overlap_exponent;
  model.step_seconds /=
      std::min(constants.most_tensor_fraction / constants.tensor_fraction,
               1 + constants.idle_tensor_gain * (1 - busy_share(problem, tile, gpu)));
  model.fetch_seconds = requests.sent * kRequestBytes / (fetch_rate(problem, tile, gpu) * clock);
  model.smem_seconds =
      requests.received * kRequestBytes / (static_cast<double>(gpu.smem_bytes_per_clock) * clock);
  model.l2_requests *= reaching_share(problem, tile, gpu);
  model.stages = static_cast<double>(ring_stages(problem, tile, gpu));
  model.stage_seconds =
      (model.step_seconds + stage_latency(problem, tile, constants).value() + model.fetch_seconds) /
      model.stages;
  model.in_turns = takes_turns(tile);
  model.hides_stores = problem.needs.only_stores && tile.cluster_k == 1;
}

// All parts of our own mainloop disturb each other. HBM hides less than the parts on the chip do:
// beside the longest of them it takes at least as long as in the library's kernels.
double own_parts(const WaveTime& t, double fetch, double ring, const WaveModel& model) {
  const double all =
      together({t.tensor, fetch, t.hbm, t.convert, t.l2, t.smem, ring}, model.own_overlap);
  return std::max(all, together({std::max({t.tensor, fetch, t.convert}), t.hbm}, model.overlap));
}

// Zeros for rows that the matrix does not have come before the data behind them. Thread blocks
// whose panels have them are late, and the others wait for their neighbours or at the kernel's end.
// What HBM takes hides less of it than of data. No more is added than the zeros take alone, so that
// few of them cost little. Tensor cores that would work longer on a panel even at their full rate
// hide all of it.
void time_own_mainloop(WaveTime& t, const GemmWave& wave, const WaveModel& model) {
  const double steps = static_cast<double>(wave.k_steps);
  const double ring = steps * model.stage_seconds;
  t.mainloop = own_parts(t, t.fetch, ring, model);
  if (wave.absent_rows == 0 || model.hides_zeros) return;
  const double zeros = steps * static_cast<double>(wave.absent_rows) * model.absent_row_seconds;
  const double panels = std::max(t.fetch, steps * model.panel_seconds) + zeros;
  const double late = std::min(
      t.mainloop + zeros, std::max(own_parts(t, panels, ring, model), std::hypot(panels, t.hbm)));
  if (late <= t.mainloop) return;
  t.mainloop = late;
  if (panels > std::max({t.tensor, t.hbm, t.smem})) t.bound = Bound::l2;
}

// Of an epilogue what costs no time where another tile follows. The next tile's operands fill the
// ring meanwhile, which makes up for as much of what the tensor cores waited for them. Where two
// consumers have a tile each, one multiplies. Epilogues that do more than store were measured in
// other runs, where they show in full.
double hidden_epilogue(const WaveTime& t, const GemmWave& wave, const WaveModel& model) {
  if (!model.hides_stores || wave.block_sums > Bytes() || wave.k_steps == 0) return 0;
  const double busy = std::max(t.tensor, t.convert);
  if (model.in_turns) return t.epilogue - std::max(0.0, (busy + t.epilogue) / 2 - t.mainloop);
  const double of_ring = model.stages * t.mainloop / static_cast<double>(wave.k_steps);
  return std::min({t.epilogue, std::max(0.0, t.mainloop - busy), of_ring});
}

}  // namespace

WaveModel::WaveModel(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu,
                     double clock_factor) {
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
      static_cast<double>(tile.k * a_rows) * problem.activation.scale_bytes_per_element(problem.k);
  convert_seconds =
      converted(problem, tile, constants) / (gpu.constants.stream.issue_lanes * clock);
  step_seconds = flops / (sm_tensor_rate(problem, gpu) * clock_factor * constants.tensor_fraction);
  panel_seconds = panel / (fetch_rate(problem, tile, gpu) * clock);
  fetch_seconds = panel_seconds;
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
    issue_seconds = static_cast<double>(tile.m * std::min(problem.n, tile.n)) *
                    (problem.needs.instructions + scaling(problem)) /
                    (gpu.constants.stream.issue_lanes * constants.epilogue_issue_fraction * clock);
  // fp32, of whole warps of 16 rows, through the port that operands come through.
  const std::int64_t rows = std::min(tile.m, ceil_div(problem.typical_rows(), 16) * 16);
  if (tile.cluster_k > 1) {
    restart_seconds = constants.cluster_start.value();
    exchange_seconds = constants.cluster_wave.value() +
                       static_cast<double>((tile.cluster_k - 1) * rows * tile.n * 4) /
                           (constants.sm_fetch_bytes_per_cycle * clock);
  }
  if (is_own_hopper(problem, gpu)) take_own_rates(*this, problem, tile, gpu, clock);
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
  double top = t.tensor;
  t.bound = Bound::tensor;
  if (t.fetch > top) top = t.fetch, t.bound = Bound::l2;
  if (t.hbm > top) top = t.hbm, t.bound = Bound::hbm;
  if (t.convert > top) top = t.convert, t.bound = Bound::tensor;
  if (model.own) {
    if (t.l2 > top) top = t.l2, t.bound = Bound::l2;
    if (t.smem > top) t.bound = Bound::smem;
    time_own_mainloop(t, wave, model);
  } else {
    // Tensor cores, fetching, HBM and dequantising disturb each other when they are near balance;
    // L2 and shared memory are ceilings only. An SM that dequantises keeps its tensor cores
    // waiting.
    t.mainloop = together({t.tensor, t.fetch, t.hbm, t.convert}, model.overlap);
    if (t.l2 > t.mainloop) t.mainloop = t.l2, t.bound = Bound::l2;
    if (t.smem > t.mainloop) t.mainloop = t.smem, t.bound = Bound::smem;
  }
  t.hidden = hidden_epilogue(t, wave, model);
  return t;
}

}  // namespace fuseline
