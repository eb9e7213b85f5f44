// Rows for bands from the cases of an error table.
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "sim/judge/band_fit.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

constexpr std::size_t kPartsOfGemms = 8;

double number(const Amount& amount) {
  if (const auto* bytes = std::get_if<Bytes>(&amount)) return bytes->as_double();
  return std::get<Seconds>(amount).value();
}

// GEMMs are of no model: shapes are left out in eight parts.
std::string model_of(const JudgedCase& c) {
  if (c.quantity != Quantity::gemm_time) return c.block.model;
  return fmt::format("GEMMs, part {}", std::hash<std::string>{}(c.label) % kPartsOfGemms);
}

std::string where(const JudgedCase& c, const std::string& gpu) {
  BlockCase block = c.block;
  block.execution.clear();
  return gpu + " " + block.label();
}

}  // namespace

std::vector<Residual> residuals_of(const ErrorTable& table, std::size_t at,
                                   std::optional<std::size_t> instead, const std::string& gpu,
                                   Standing standing, bool ran_here) {
  std::vector<Residual> rows;
  for (const JudgedCase& c : table.cases) {
    const bool of_block = c.quantity != Quantity::gemm_time;
    if (of_block && ran_here && maker_of(c.block.execution) == "library") continue;
    const std::size_t by = instead && c.predicted[*instead] ? *instead : at;
    if (!c.predicted[by] || !c.works[by]) continue;
    Residual row{.work = *c.works[by],
                 .model = model_of(c),
                 .where = where(c, gpu),
                 .standing = standing,
                 .predicted = number(*c.predicted[by]),
                 .measured = number(c.measured),
                 .gpu = gpu};
    if (by < c.kernels.size()) row.kernels = c.kernels[by];
    if (row.predicted > 0 && row.measured > 0) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Residual> gains_of(const std::vector<Residual>& times) {
  std::map<std::string, std::vector<const Residual*>> blocks;
  for (const Residual& r : times) {
    if (r.work.what == "time" && r.work.apart.empty()) blocks[r.where].push_back(&r);
  }
  std::vector<Residual> out;
  for (const auto& [where, rows] : blocks) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        const bool swap = rows[i]->predicted < rows[j]->predicted;
        const Residual& slow = swap ? *rows[j] : *rows[i];
        const Residual& fast = swap ? *rows[i] : *rows[j];
        const double gain = slow.predicted / fast.predicted;
        out.push_back(
            {.work = gain_class({slow.work, slow.kernels}, {fast.work, fast.kernels}, gain),
             .model = slow.model,
             .where = where,
             .standing = slow.standing,
             .predicted = gain,
             .measured = slow.measured / fast.measured,
             .gpu = slow.gpu});
      }
    }
  }
  return out;
}

}  // namespace fuseline
