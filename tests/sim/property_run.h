// Random blocks, and what must hold of their predictions whatever their sizes: an estimate is not
// below its limits; more work takes no less time with the same kernels; a better GPU is not slower.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "sim/gpu/what_if.h"
#include "tests/sim/sim_support.h"

namespace fuseline {

// A random block of a random policy on a random GPU.
struct PropertyCase {
  ModelConfig model;
  Workload work;
  std::string policy, gpu;

  [[nodiscard]] std::string text() const {
    return gpu + " " + policy + " D " + std::to_string(model.D) + " F " + std::to_string(model.F) +
           " H " + std::to_string(model.H) + "/" + std::to_string(model.Hkv) + " d " +
           std::to_string(model.d) + (model.is_all("llama") ? " llama " : " gpt ") +
           name_of(work.phase) + " " + std::to_string(work.batch) + "x" + std::to_string(work.seq) +
           " of " + std::to_string(work.context);
  }
};

class RandomCases {
 public:
  explicit RandomCases(std::uint64_t seed) : random_(seed) {}

  // Spread over the orders of magnitude, odd sizes among them.
  std::int64_t number(std::int64_t least, std::int64_t most) {
    std::uniform_real_distribution<double> log(std::log(static_cast<double>(least)),
                                               std::log(static_cast<double>(most) + 0.99));
    return std::clamp(static_cast<std::int64_t>(std::exp(log(random_))), least, most);
  }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random_)];
  }
  PropertyCase next() {
    static const std::vector<std::string> gpus = {"h200",    "h100-sxm", "a100-sxm-80gb", "l40s",
                                                  "rtx4090", "b200",     "h100-pcie"};
    static const std::vector<std::string> names(std::begin(kPolicies), std::end(kPolicies));
    PropertyCase c{.model = one_of<int>({0, 1}) == 0 ? small_llama() : small_gpt(),
                   .work = {},
                   .policy = one_of(names),
                   .gpu = one_of(gpus)};
    // Sizes that are multiples of 8, of 2, and any.
    const std::int64_t step = one_of<std::int64_t>({8, 8, 2, 1});
    c.model.d = std::max<std::int64_t>(2, step) *
                number(8 / step + 1, 256 / std::max<std::int64_t>(2, step));
    c.model.Hkv = number(1, 16);
    c.model.H = c.model.Hkv * number(1, 8);
    if (!c.model.is_all("llama")) c.model.H = c.model.Hkv;
    c.model.D = step * number(64 / step, 4096 / step);
    c.model.F = step * number(64 / step, 8192 / step);
    c.model.max_positions = 1 << 20;
    switch (one_of<int>({0, 0, 1, 1, 2})) {
      case 0:
        c.work = forward(number(1, 8), number(1, 1500));
        break;
      case 1:
        c.work = decode(number(1, 100), one_of<std::int64_t>({1, 1, 1, 3}), number(4, 7000));
        break;
      default:
        c.work = forward(number(1, 4), number(1, 600));
        c.work.phase = Phase::train;
    }
    return c;
  }

 private:
  std::mt19937_64 random_;
};

// Tiles, clusters, splits and launches: a choice of kernels.
inline bool same_kernels(const PlanEstimate& a, const PlanEstimate& b) {
  return std::ranges::equal(a.kernels, b.kernels, [](const auto& x, const auto& y) {
    return x.name == y.name && x.tile == y.tile && x.choice == y.choice && x.launches == y.launches;
  });
}

// Rows that the last tile of so many rows lacks, of all tiles of one column of them.
inline std::int64_t lacking_rows(std::int64_t rows, std::int64_t tile) {
  return ceil_div(rows, tile) * tile - rows;
}

// The names of products that are no library's, whatever the policy.
inline std::set<std::string> own_products(const Plan& plan) {
  std::set<std::string> names;
  for (const Kernel& k : plan.kernels)
    if (k.implementation != Implementation::library_gemm) names.insert(k.name);
  return names;
}

// How much less time products take whose last tile lacks fewer rows. Our own mainloop on a GPU with
// bulk copies waits for the zeros in their place, so a fuller tile is faster: 128 x 6144 x 4096
// took 24.8 us in tiles of 128 x 128 where 2 rows took 35.2 us (cuda/bench/results/decode.csv).
struct FullerTiles {
  Seconds spared;       // by all such products
  double greatest = 0;  // share of one's time
};
inline FullerTiles fuller_tiles(const std::set<std::string>& own, const PlanEstimate& e,
                                std::int64_t rows, const PlanEstimate& b, std::int64_t more_rows) {
  constexpr std::int64_t kHighestWithoutZeros = 64;
  FullerTiles all;
  for (std::size_t i = 0; i < e.kernels.size(); ++i) {
    const KernelEstimate& k = e.kernels[i];
    const bool block = k.kind == KernelKind::block;  // its tiles of 128 rows are among the choices
    if (!block && (k.kind != KernelKind::gemm || k.tile.empty())) continue;
    if (!own.contains(k.name)) continue;
    if (k.name.starts_with("dw_")) continue;  // as high as a weight, whatever the tokens
    const std::int64_t tile = block ? 128 : k.tile.front();
    if (block && std::ranges::find(k.choice, tile) == k.choice.end()) continue;
    if (tile <= kHighestWithoutZeros || lacking_rows(more_rows, tile) >= lacking_rows(rows, tile) ||
        b.kernels[i].time >= k.time)
      continue;
    all.spared += k.time - b.kernels[i].time;
    all.greatest = std::max(all.greatest, 1 - b.kernels[i].time / k.time);
  }
  return all;
}

// A larger L2 keeps what kernels write for longer. So fewer bytes move, but some move later, in
// kernels that wait for HBM, where the products that wrote them did not. How long those take.
inline Seconds later_writes(const Gpu& gpu, const PlanEstimate& e, const PlanEstimate& b) {
  Bytes later;
  for (std::size_t i = 0; i < e.kernels.size(); ++i)
    later += std::max(Bytes(), b.kernels[i].hbm_write - e.kernels[i].hbm_write);
  return later / (gpu.hbm_bandwidth_sustained * gpu.constants.stream.hbm_fraction);
}

inline bool has_phases(const PlanEstimate& e) {
  return std::ranges::any_of(e.kernels,
                             [](const KernelEstimate& k) { return k.kind == KernelKind::block; });
}

inline double bytes_of(const PlanEstimate& e) { return (e.hbm_read + e.hbm_write).as_double(); }

struct PropertyCount {
  std::int64_t compared = 0, broken = 0;
  double worst = 0;  // by how much less time, or more
  std::string where;
};

class PropertyRun {
 public:
  // Below it is rounding.
  static constexpr double kRounding = 1e-9;

  // `details` takes a line for every break; nullptr: none.
  explicit PropertyRun(std::uint64_t seed, std::ostream* details = nullptr)
      : random_(seed), details_(details) {}

  void run(std::int64_t cases) {
    for (std::int64_t i = 0; i < cases; ++i) {
      PropertyCase c = random_.next();
      try {
        judge(c);
        ++judged_;
      } catch (const InputError& error) {
        if (details_ != nullptr)
          *details_ << "refused | " << error.what() << " | " << c.text() << "\n";
        ++refused_;
      }
    }
  }

  [[nodiscard]] const std::map<std::string, PropertyCount>& counts() const { return counts_; }
  [[nodiscard]] std::int64_t judged() const { return judged_; }
  [[nodiscard]] std::int64_t refused() const { return refused_; }

 private:
  static PlanEstimate predicted(const PropertyCase& c, const Gpu& gpu) {
    const Gpu& known = gpu.chosen_for ? *gpu.chosen_for : gpu;
    return simulate(make_plan(c.policy, c.model, c.work, plan_target(known)), gpu,
                    Fidelity::hierarchy);
  }

  const Gpu& gpu_named(const std::string& name) {
    return gpus_.try_emplace(name, load_gpu(name)).first->second;
  }

  void note(const std::string& what, const PropertyCase& c, double over,
            const PlanEstimate* e = nullptr, const PlanEstimate* b = nullptr, double sign = 1) {
    PropertyCount& count = counts_[what];
    ++count.compared;
    if (over <= kRounding) return;
    ++count.broken;
    if (over > count.worst) {
      count.worst = over;
      count.where = c.text();
    }
    if (details_ == nullptr) return;
    *details_ << what << " | " << over << " | " << c.text();
    if (e != nullptr && e->kernels.size() == b->kernels.size()) {
      for (std::size_t i = 0; i < e->kernels.size(); ++i) {
        const double change = sign * (e->kernels[i].time - b->kernels[i].time).value() * 1e6;
        if (change > 1e-4)
          *details_ << " | " << e->kernels[i].name << " " << to_us(e->kernels[i].time) << " -> "
                    << to_us(b->kernels[i].time);
      }
      if (e->clock_factor != b->clock_factor)
        *details_ << " | clock " << e->clock_factor << " -> " << b->clock_factor;
    }
    *details_ << '\n';
  }

  void judge(const PropertyCase& c) {
    const Gpu& gpu = gpu_named(c.gpu);
    const PlanEstimate e = predicted(c, gpu);
    note("time is below its limit", c, 1 - e.time / e.limits.time);
    note("bytes are below their limit", c,
         1 - bytes_of(e) /
                 std::max(1.0, std::max(e.limits.least, e.limits.capacity_bound).as_double()));
    more_work(c, gpu, e);
    better_gpu(c, gpu, e);
  }

  // One of the sizes, twice as large or a little larger.
  void more_work(const PropertyCase& c, const Gpu& gpu, const PlanEstimate& e) {
    PropertyCase more = c;
    const int how = random_.one_of<int>({0, 1, 2});
    const auto grown = [how](std::int64_t n) {
      return how == 0 ? 2 * n : how == 1 ? n + 1 : n + 1 + n / 3;
    };
    std::string what = "batch";
    if (random_.one_of<int>({0, 1}) == 0) {
      more.work.batch = grown(c.work.batch);
    } else if (c.work.phase == Phase::decode) {
      what = "context";
      more.work.context = grown(c.work.context);
    } else {
      what = "tokens";
      more.work.seq = grown(c.work.seq);
    }
    const PlanEstimate b = predicted(more, gpu);
    const bool same = same_kernels(e, b);
    FullerTiles fuller;
    if (same && has_feature(gpu, Feature::bulk_copy))
      fuller = fuller_tiles(own_products(make_plan(c.policy, c.model, c.work, plan_target(gpu))), e,
                            c.work.batch * c.work.seq, b, more.work.batch * more.work.seq);
    if (fuller.greatest > 0)
      note("a product with a fuller last tile takes less time", c, fuller.greatest, &e, &b);
    const double fall = 1 - (b.time + fuller.spared) / e.time;
    note("more " + what + " takes less time" + (same ? "" : " with other kernels"), c, fall, &e,
         &b);
  }

  void better_gpu(const PropertyCase& c, const Gpu& gpu, const PlanEstimate& e) {
    struct Change {
      const char* what;
      WhatIf by;
      double tdp = 1;
    };
    static const std::vector<Change> changes = {{"HBM bandwidth", {.hbm_bandwidth = 2}, 1},
                                                {"L2 bandwidth", {.l2_bandwidth = 2}, 1},
                                                {"L2", {.l2_capacity = 2}, 1},
                                                {"SM clock", {.sm_clock = 2}, 1},
                                                {"SMs", {.sm_count = 2}, 1},
                                                {"power limit", {}, 2}};
    const Change& first = random_.one_of(changes);
    const Change& second = random_.one_of(changes);
    for (const Change* change : {&first, &second}) {
      Gpu better = with_what_if(gpu, change->by);
      better.tdp *= change->tdp;
      const PlanEstimate b = predicted(c, better);
      const bool same = same_kernels(e, b);
      const bool of_l2 = change->by.l2_capacity > 1 && same;
      // In one kernel of several phases nobody sees which of them writes.
      if (!of_l2 || !has_phases(e)) {
        const Seconds later = of_l2 ? later_writes(gpu, e, b) : Seconds();
        note("twice the " + std::string(change->what) + " is slower" +
                 (same ? "" : " with other kernels"),
             c, (b.time - later) / e.time - 1, &e, &b, -1);
      }
      if (!of_l2) continue;
      note("twice the L2 brings writes to kernels that HBM holds up", c, b.time / e.time - 1);
      note("twice the L2 moves more bytes", c, bytes_of(b) / std::max(1.0, bytes_of(e)) - 1);
    }
  }

  RandomCases random_;
  std::ostream* details_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, PropertyCount> counts_;
  std::int64_t judged_ = 0, refused_ = 0;
};

}  // namespace fuseline
