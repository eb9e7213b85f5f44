#include "sim/verdict/limit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "sim/kernels/epilogue_needs.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/program_streams.h"

namespace fuseline {

namespace {

// Below it, a kernel takes as long as before.
constexpr double kNoCost = 0.002;
// FLOPs that are this much more are computed more often than once.
constexpr double kRecomputed = 1.01;

// Words of the reasons in model/why_not.cpp; the first that occurs counts.
struct ReasonWord {
  const char* phrase;
  const char* word;
};
constexpr ReasonWord kReasonWords[] = {
    {"would compute it again", "recomputation"},
    {"partials of its rows again", "recomputation"},
    {"second mainloop", "a second mainloop"},
    {"needs a full row", "a full row"},
    {"needs the partials of all", "sums of other tiles"},
    {"when its last tile is done", "sums of other tiles"},
    {"when its last row is done", "sums of other tiles"},
    {"when other thread blocks", "sums of other tiles"},
    {"sums over all", "a full column"},
    {"along columns", "a full column"},
    {"exceed shared memory", "SMEM"},
    {"exceed a stage", "SMEM"},
    {"interleaved", "pairs in two tiles"},
    {"reads rows above its tile", "rows of other tiles"},
    {"could share a kernel", "the policy"},
    {"was not chosen", "the policy"},
    {"cycle", "a cycle"},
};
// Said already by the word.
constexpr std::string_view kSecond = "second mainloop: ";
constexpr const char* kOtherTiles = "tiles that do not match";
constexpr const char* kNothing = "nothing";

// The kernels that have one of the operators, and the launches behind them.
struct KernelSum {
  Seconds time;
  Bytes hbm;
  Flops flops;
  const KernelEstimate* longest = nullptr;
};

KernelSum sum_of(const SimulatedPlan& p, const std::set<std::string>& operators) {
  std::vector<std::string> found;
  KernelSum out;
  for (const KernelEstimate& k : p.estimate.kernels) {
    const bool one = std::ranges::any_of(
        k.operators, [&](const std::string& name) { return operators.contains(name); });
    const bool behind = k.operators.empty() && std::ranges::any_of(found, [&](const auto& name) {
                          return k.name.starts_with(name + "_");
                        });
    if (!one && !behind) continue;
    found.push_back(k.name);
    out.time += k.time;
    out.hbm += k.hbm_read + k.hbm_write;
    out.flops += k.flops;
    if (out.longest == nullptr || out.longest->time < k.time) out.longest = &k;
  }
  return out;
}

const Kernel* kernel_with(const Plan& plan, const std::string& op) {
  const auto id = plan.graph.find_op(op);
  for (const Kernel& k : plan.kernels) {
    if (id && std::ranges::find(k.ops, *id) != k.ops.end()) return &k;
  }
  return nullptr;
}

// The kernel's product as the simulator sees it; empty where it has none.
std::optional<GemmProblem> product_of(const SimulatedPlan& p, const Kernel& kernel) {
  if (kernel.kind != KernelKind::gemm || kernel.phases.size() != 1) return std::nullopt;
  return gemm_problem_of(kernel, kernel.phases.front(), AddressMap(p.plan));
}

std::string tile_text(const GemmTile& t) { return fmt::format("{} x {}", t.m, t.n); }

double waves_of(const GemmProblem& p, const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t units =
      ceil_div(p.typical_rows(), tile.m) * ceil_div(p.n, tile.n) * p.products() * tile.cluster_k;
  return static_cast<double>(units) / static_cast<double>(blocks_at_once(tile, gpu));
}

// Why the epilogue cannot have the tile that the product alone takes.
std::string what_refuses(EpilogueNeeds needs, const GemmTile& tile, std::int64_t shared) {
  if (fits(needs, tile, shared)) return {};
  needs.live_registers = 0;
  if (fits(needs, tile, shared)) return "registers";
  needs.tile_loads = needs.col_loads = 0;
  if (fits(needs, tile, shared)) return "SMEM";
  return kOtherTiles;
}

// How the product runs with this epilogue, beside the product alone in the same mainloop and where
// it ran before.
struct Mainloops {
  GemmProblem fused, alone, before;
  GemmTile fused_tile{}, alone_tile{}, before_tile{};
  std::size_t tiles = 0, tiles_that_fit = 0;
};

std::optional<Mainloops> mainloops_of(const SimulatedPlan& without, const SimulatedPlan& with,
                                      const Kernel& fused, const Gpu& gpu) {
  const auto product = product_of(with, fused);
  if (!product || product->library) return std::nullopt;
  for (const OpId id : fused.ops) {
    const Kernel* kernel = kernel_with(without.plan, with.plan.graph.op(id).name);
    if (kernel == nullptr) continue;
    const auto before = product_of(without, *kernel);
    if (!before) continue;
    Mainloops m{.fused = *product, .alone = *before, .before = *before};
    m.alone.library = false;
    if (before->library) m.alone.needs = {};
    m.fused_tile = choose_tile(m.fused, gpu);
    m.alone_tile = choose_tile(m.alone, gpu);
    m.before_tile = choose_tile(m.before, gpu);
    const std::int64_t shared = gpu.smem_per_block_max.value();
    for (const GemmTile& tile : gpu.architecture->tiles.own) {
      ++m.tiles;
      m.tiles_that_fit += static_cast<std::size_t>(fits(m.fused.needs, tile, shared));
    }
    return m;
  }
  return std::nullopt;
}

std::string tiles_sentence(const Mainloops& m) {
  return fmt::format(
      "the epilogue fits {} of {} tiles and takes {}, where the product alone would take {}",
      m.tiles_that_fit, m.tiles, tile_text(m.fused_tile), tile_text(m.alone_tile));
}

std::optional<FusionLimit> mainloop_limit(const Mainloops& m, const Gpu& gpu) {
  const std::int64_t shared = gpu.smem_per_block_max.value();
  if (!(m.fused_tile == m.alone_tile)) {
    const std::string refuses = what_refuses(m.fused.needs, m.alone_tile, shared);
    if (!refuses.empty()) return FusionLimit{refuses, tiles_sentence(m)};
  }
  const double waves = waves_of(m.fused, m.fused_tile, gpu);
  const double before = waves_of(m.before, m.before_tile, gpu) *
                        static_cast<double>(std::max<std::int64_t>(1, m.before_tile.split_k));
  // The last wave's idle SMs, as a share of all waves.
  const auto idle = [](double w) { return (std::ceil(w) - w) / std::ceil(w); };
  if (idle(waves) > idle(before) + 0.05) {
    return FusionLimit{
        "waves",
        fmt::format("tiles of {} fill {:.2f} waves, those of {} before it {:.2f}; the "
                    "last wave leaves {:.0f} % of the time to idle SMs instead of {:.0f} %",
                    tile_text(m.fused_tile), waves, tile_text(m.before_tile), before,
                    100 * idle(waves), 100 * idle(before))};
  }
  const Seconds own = quick_gemm_time(m.alone, m.alone_tile, gpu);
  const Seconds library = quick_gemm_time(m.before, m.before_tile, gpu);
  if (m.before.library && own > library * (1 + kNoCost)) {
    return FusionLimit{"the mainloop",
                       fmt::format("a product with an epilogue takes our mainloop: {} µs without "
                                   "any epilogue, where the library's takes {}",
                                   in_microseconds(own), in_microseconds(library))};
  }
  return std::nullopt;
}

FusionLimit limit_of_cost(const SimulatedPlan& without, const SimulatedPlan& with,
                          const Kernel& fused, const KernelSum& apart, const KernelSum& together,
                          const Gpu& gpu) {
  const std::string bound = name_of(together.longest->bound);
  if (together.flops.as_double() > kRecomputed * apart.flops.as_double()) {
    return {"recomputation",
            fmt::format("the kernel computes {:.1f} GFLOP, those apart {:.1f}",
                        together.flops.as_double() / 1e9, apart.flops.as_double() / 1e9)};
  }
  // What the product's kernel takes longer than without the edge.
  Seconds longest_apart{};
  if (apart.longest != nullptr) longest_apart = apart.longest->time;
  const Seconds longer = together.longest->time - longest_apart;
  if (longer > longest_apart * kNoCost) {
    if (const auto m = mainloops_of(without, with, fused, gpu)) {
      if (auto limit = mainloop_limit(*m, gpu)) return std::move(*limit);
    }
    return {bound == "tensor" ? "the epilogue" : bound,
            fmt::format("{} takes {} µs instead of {}, bound by {}", together.longest->name,
                        in_microseconds(together.longest->time), in_microseconds(longest_apart),
                        bound)};
  }
  return {kNothing, fmt::format("the longest kernel, {}, takes no longer than before; it is bound "
                                "by {}",
                                together.longest->name, bound)};
}

}  // namespace

const std::vector<std::string>& limit_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = {kNothing,       "registers",    "waves",
                                    "the mainloop", "the epilogue", kOtherTiles};
    for (const ReasonWord& r : kReasonWords) {
      if (std::ranges::find(all, r.word) == all.end()) all.emplace_back(r.word);
    }
    for (const Bound b :
         {Bound::tensor, Bound::hbm, Bound::l2, Bound::smem, Bound::launch, Bound::sync}) {
      all.emplace_back(name_of(b));
    }
    return all;
  }();
  return words;
}

FusionLimit limit_of_refusal(const std::string& reason) {
  for (const ReasonWord& r : kReasonWords) {
    if (reason.find(r.phrase) == std::string::npos) continue;
    return {r.word, reason.starts_with(kSecond) ? reason.substr(kSecond.size()) : reason};
  }
  return {kOtherTiles, reason};
}

EdgeCost cost_of_edge(const SimulatedPlan& without, const SimulatedPlan& with,
                      const std::string& from, const Gpu& gpu) {
  const Kernel* fused = kernel_with(with.plan, from);
  FUSELINE_ASSERT(fused != nullptr, from);
  std::set<std::string> operators;
  for (const OpId id : fused->ops) operators.insert(with.plan.graph.op(id).name);
  const KernelSum apart = sum_of(without, operators), together = sum_of(with, operators);
  FUSELINE_ASSERT(together.longest != nullptr, from);
  return {.apart = apart.time,
          .together = together.time,
          .hbm_apart = apart.hbm,
          .hbm_together = together.hbm,
          .limit = limit_of_cost(without, with, *fused, apart, together, gpu)};
}

FusionLimit limit_of_plan(const Plan& plan) {
  const FusionNote* largest = nullptr;
  const auto bytes = [&](const FusionNote& n) { return plan.graph.tensor(n.edge.tensor).bytes(); };
  for (const FusionNote& n : plan.notes) {
    if (!n.fused && (largest == nullptr || bytes(*largest) < bytes(n))) largest = &n;
  }
  if (largest == nullptr) return {kNothing, "no tensor between two operators is in memory"};
  const Edge& e = largest->edge;
  FusionLimit limit = limit_of_refusal(largest->reason);
  limit.why = fmt::format("{} ({} MB) goes through memory from {} to {}: {}",
                          plan.graph.tensor(e.tensor).name, megabytes(bytes(*largest)),
                          plan.graph.op(e.from).name, plan.graph.op(e.to).name, limit.why);
  return limit;
}

}  // namespace fuseline
