#include "sim/kernels/gemm_wave_reader.h"

#include <algorithm>
#include <cmath>

namespace fuseline {
namespace {

// The scales of one depth of a panel.
void read_scales(const GemmProblem& problem, const Panel& panel, std::int64_t k_begin,
                 std::int64_t k_end, L2Cache& cache) {
  if (!panel.of_b) {
    if (!problem.row_scales) return;
    const ScaleRange r =
        problem.activation.beside(ScaleKind::scale, panel.row_begin, panel.row_end, k_begin, k_end);
    cache.read(*problem.row_scales, r.row_begin, r.row_end, r.col_begin, r.col_end);
    return;
  }
  for (const GemmScales& s : problem.scales) {
    const ScaleRange r =
        problem.weight.beside(s.kind, panel.row_begin, panel.row_end, k_begin, k_end);
    const std::int64_t first =
        s.kind == ScaleKind::tensor_scale ? 0 : panel.batch * s.rows_of_group;
    cache.read(s.matrix, first + r.row_begin, first + r.row_end, r.col_begin, r.col_end);
  }
}

void read_panel_step(const GemmOperand& operand, const Panel& panel, std::int64_t k_begin,
                     std::int64_t k_end, L2Cache& cache) {
  const MatrixOrigin origin = operand.origin(panel.batch);
  if (operand.transposed) {
    cache.read(operand.matrix, origin.row + k_begin, origin.row + k_end,
               origin.col + panel.row_begin, origin.col + panel.row_end);
  } else {
    cache.read(operand.matrix, origin.row + panel.row_begin, origin.row + panel.row_end,
               origin.col + k_begin, origin.col + k_end);
  }
}

}  // namespace

void WaveReader::clear() {
  for (WavePanels* panels : {&all_, &ahead_, &behind_}) panels->clear();
  units_ = 0;
  missed_ = {};
}

void WaveReader::add(const GemmUnit& unit) {
  all_.add(unit);
  if (of_one_ > 0) (units_ % 2 == 0 ? ahead_ : behind_).add(unit);
  ++units_;
}

// Reads the panels at one depth. Returns the number of blocks of 64 rows.
std::int64_t WaveReader::read_panels(const std::vector<Panel>& panels, std::int64_t k,
                                     L2Cache& cache) {
  std::int64_t reads = 0;
  for (const Panel& panel : panels) {
    const std::int64_t k_begin = panel.k_begin + k;
    const std::int64_t k_end = std::min(panel.k_end, k_begin + kChunkEdge);
    if (k_begin >= k_end) continue;
    const Bytes before = cache.read_since_taken();
    read_panel_step(panel.of_b ? problem_->b : problem_->a, panel, k_begin, k_end, cache);
    const Bytes of_operand = cache.read_since_taken() - before;
    read_scales(*problem_, panel, k_begin, k_end, cache);
    const Bytes of_both = cache.read_since_taken() - before;
    (panel.of_b ? missed_.b : missed_.a) += of_both;
    missed_.scales += of_both - of_operand;
    reads += panel.blocks();
  }
  return reads;
}

std::int64_t WaveReader::read(std::int64_t depth, std::int64_t waves_before, L2Cache& cache) {
  constexpr double kSurelyKept = 0.25;  // of L2
  const double drift = share_of_way(depth, waves_before);
  const double between = distinct().as_double() * drift;
  const bool drifts =
      units_ > 1 && drift > 0 && between > kSurelyKept * cache.capacity().as_double();
  const std::vector<Panel> none;
  const std::vector<Panel>& first = drifts ? ahead_.distinct() : all_.distinct();
  const std::vector<Panel>& second = drifts ? behind_.distinct() : none;
  std::int64_t reads = 0, late = 0;
  for (std::int64_t k = 0; k < depth; k += kChunkEdge) {
    reads += read_panels(first, k, cache);
    const auto reached = static_cast<std::int64_t>(static_cast<double>(k) * (1 - drift));
    for (; drifts && late < reached; late += kChunkEdge) reads += read_panels(second, late, cache);
  }
  for (; drifts && late < depth; late += kChunkEdge) reads += read_panels(second, late, cache);
  return reads;
}

double WaveReader::found() {
  Bytes a, b;
  for (const Panel& panel : all_.distinct()) (panel.of_b ? b : a) += bytes_of(*problem_, {panel});
  const auto held = [](Bytes missed, Bytes all) {
    return 1 - std::min(1.0, missed.as_double() / std::max(1.0, all.as_double()));
  };
  return std::min(held(missed_.a, a), held(missed_.b, b));
}

// By which who is behind is behind at the end of a wave, in which all go as far as in this one.
double WaveReader::share_of_way(std::int64_t depth, std::int64_t waves_before) const {
  constexpr double kMost = 0.9;
  const auto way = static_cast<double>(depth);
  return std::min(
      kMost, of_one_ * std::sqrt(way * static_cast<double>(waves_before + 1)) / std::max(1.0, way));
}

}  // namespace fuseline
