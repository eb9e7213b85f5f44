#include "sim/block/walk_size.h"

#include <fmt/format.h>

#include <string>
#include <variant>

#include "base/error.h"
#include "sim/memory/l2_cache.h"
#include "sim/memory/traffic.h"

namespace fuseline {

namespace {

constexpr double kTileEdge = 128;
constexpr double kMostTiles = 48e6;
constexpr double kMostChunks = 1200e6;

double as_double(std::int64_t count) { return static_cast<double>(count); }

double tiles_of(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr) return 0;
  const double groups = as_double(std::max<std::int64_t>(1, std::ssize(gemm->groups)));
  return as_double(gemm->batch) * (as_double(gemm->M) / kTileEdge + groups) *
         (as_double(gemm->N) / kTileEdge + 1);
}

double chunks_of(const Program& program) {
  const double edge = as_double(kChunkEdge);
  double elements = 0;
  for (const auto& touched : {loads(program), stores(program)}) {
    for (const Operand& o : touched) elements += as_double(o.rows) * as_double(o.cols);
  }
  return elements / (edge * edge);
}

}  // namespace

bool WalkSize::fits() const { return tiles <= kMostTiles && chunks <= kMostChunks; }

WalkSize walk_size(const Plan& plan) {
  WalkSize size;
  for (const Kernel& kernel : plan.kernels) {
    for (const Program& phase : kernel.phases) {
      size.tiles += tiles_of(phase);
      size.chunks += chunks_of(phase);
    }
  }
  return size;
}

std::string describe(const WalkSize& size) {
  return fmt::format("{:.0f} million GEMM tiles and {:.0f} million cache chunks", size.tiles * 1e-6,
                     size.chunks * 1e-6);
}

void check_walk_size(const Plan& plan) {
  const WalkSize size = walk_size(plan);
  if (size.fits()) return;
  throw InputError({.message = fmt::format("the block is too large to simulate under policy {}: {}",
                                           plan.policy, describe(size)),
                    .allowed = fmt::format(
                        "{:.0f} and {:.0f} million: fewer tokens, another policy, or fidelity "
                        "roofline",
                        kMostTiles * 1e-6, kMostChunks * 1e-6)});
}

}  // namespace fuseline
