#include "sim/kernels/codes_columns.h"

#include <algorithm>

#include "model/formats/weight_format.h"
#include "model/target.h"

namespace fuseline {

namespace {

constexpr std::int64_t kRowsOfInstruction = 16;  // of weights
constexpr std::int64_t kRowsOfBox = 256;         // at most
constexpr std::int64_t kInstructionsOfWarp = 6;  // side by side: the sums of more do not fit
constexpr std::int64_t kLeastRing = 64 * 1024;   // bytes
constexpr std::int64_t kStagesOfRing = 62;       // at most
constexpr std::int64_t kLeastRounds = 2;
constexpr std::int64_t kCodesOverRows = 2;   // bytes over bytes, of a thread block, at least
constexpr std::int64_t kCopiedTogether = 8;  // columns of A
constexpr std::int64_t kSumsOfRow = 2;       // along it, at most
constexpr std::int64_t kSumPadding = 4;      // numbers
constexpr std::int64_t kStripStage = 2048;   // bytes
constexpr std::int64_t kBarriers = 1024;     // bytes

std::int64_t codes_of_box(const StoredWeight& weight) {
  return kColumnsBoxBytes * 8 / size_of(weight.element()).bits();
}

std::int64_t lines(std::int64_t bytes) { return ceil_div(bytes, 128) * 128; }

bool has_scales_of_slices(const StoredWeight& weight, std::int64_t k) {
  const WeightFormat& f = *weight.format;
  // A row's only scale lies beside those of other rows, and rows of several at multiples of 16
  // bytes.
  const bool whole_rows = weight.group == 0 || k > weight.group;
  return f.group_rows == 1 && !f.zero_points && !f.tensor_scale && weight.scales_sums() &&
         whole_rows && size_of(f.scale).bits() >= 16;
}

bool fits_strips(const EpilogueNeeds& needs) {
  if (needs.reduces_columns || needs.rows_in_runs || kColumnsStrip % needs.column_group != 0)
    return false;
  return needs.row_partial_cols == 0 || (needs.row_sums_of_product && needs.row_sums > 0 &&
                                         needs.row_sums <= kSumsOfRow && !needs.whole_partials);
}

// As many thread blocks as there are multiprocessors, or a multiple of them. Where a block's last
// strip is none of its own it begins in the one before: sums along rows, and what is added to a
// tensor, take whole strips.
std::int64_t columns_of_block(std::int64_t n, bool whole_strips) {
  const std::int64_t rounds = ceil_div(n, kMultiprocessorsOfCodes * kRowsOfBox);
  const std::int64_t step = whole_strips ? kColumnsStrip : kRowsOfInstruction;
  return std::max(kColumnsStrip, ceil_div(n, kMultiprocessorsOfCodes * rounds * step) * step);
}

// Of what the form leaves of the shared memory; 0: too few. A ring of one round alone would have
// every stage wait for its warps: with int8 weights and 8 rows, gate_up of LLaMA-2-7B took 36.7 us
// with four stages and a step of four, and 33.7 with a step of two.
std::int64_t stages_of(const CodesProduct& p, const CodesColumns& form) {
  const std::int64_t ring = Target{}.shared_bytes_per_block - columns_shared_bytes(p, form);
  if (ring < kLeastRing) return 0;
  const std::int64_t fitting = std::min(kStagesOfRing, ring / (form.columns * kColumnsBoxBytes));
  if (fitting >= form.boxes) return form.boxes;
  const std::int64_t rounds = fitting / form.box_step();
  return rounds < kLeastRounds ? 0 : rounds * form.box_step();
}

}  // namespace

std::int64_t columns_shared_bytes(const CodesProduct& p, const CodesColumns& form) {
  const std::int64_t scale = size_of(p.weight.format->scale).bits() / 8;
  const std::int64_t scales =
      p.weight.group == 0 ? form.columns * 4
                          : form.columns * ceil_div(ceil_div(p.k, p.weight.group) * scale, 16) * 16;
  const std::int64_t sums =
      kColumnsConsumers / form.row_warps * form.rows * (form.columns + kSumPadding) * 4;
  return form.boxes * codes_of_box(p.weight) * form.rows * 2 + lines(scales) + lines(sums) +
         ceil_div(form.columns, kColumnsStrip) * kStripStage + kBarriers;
}

std::optional<CodesColumns> codes_columns(const CodesProduct& p, const EpilogueNeeds& needs) {
  if (p.m > kColumnsRows || p.k % kCopiedTogether != 0 || !p.weight.quantised()) return {};
  if (!has_scales_of_slices(p.weight, p.k) || !fits_strips(needs)) return {};
  CodesColumns form;
  // Groups of columns lie within a strip, and strips within a block.
  const bool groups_of_strips = kRowsOfInstruction % needs.column_group != 0;
  form.columns =
      columns_of_block(p.n, needs.row_partial_cols > 0 || needs.accumulates || groups_of_strips);
  if (p.n < form.columns || 2 * ceil_div(p.n, form.columns) < kMultiprocessorsOfCodes) return {};
  form.rows = 1;
  while (form.rows < p.m) form.rows *= 2;
  // The other kernel's thread blocks have a part of K, and load so much of A. With int4 and 4,096 x
  // 4,096 weights it takes as long with 4 rows (12.3 us on an H200, and 12.2) and less with 8 (13.4
  // and 13.8).
  const std::int64_t row_of_codes = p.k * size_of(p.weight.element()).bits() / 8;
  if (form.columns * row_of_codes < kCodesOverRows * form.rows * p.k * 2) return {};
  form.boxes = ceil_div(p.k, codes_of_box(p.weight));
  for (form.row_warps = 1; form.row_warps < kColumnsConsumers / 2; form.row_warps *= 2) {
    if (form.row_warps * kInstructionsOfWarp * kRowsOfInstruction < form.columns) continue;
    form.stages = stages_of(p, form);
    if (form.stages > 0) return form;
  }
  return {};
}

GemmTile tile_of(const CodesColumns& form, const StoredWeight& weight) {
  GemmTile tile{
      .m = kColumnsRows, .n = form.columns, .k = codes_of_box(weight), .stages = form.stages};
  tile.dequantises = tile.whole_depth = true;
  return tile;
}

}  // namespace fuseline
