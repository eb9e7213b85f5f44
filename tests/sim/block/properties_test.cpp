// What holds for every shape: no estimate beats its limits, more work takes no less time with the
// same kernels, a better GPU is not slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "sim/block/estimate.h"
#include "sim/block/single_gemm.h"
#include "sim/gpu/what_if.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

class RandomShapes {
 public:
  explicit RandomShapes(std::uint64_t seed) : random_(seed) {}
  // Spread over the orders of magnitude, odd sizes among them.
  std::int64_t number(std::int64_t least, std::int64_t most) {
    std::uniform_real_distribution<double> log(std::log(static_cast<double>(least)),
                                               std::log(static_cast<double>(most) + 0.99));
    return std::max(least, static_cast<std::int64_t>(std::exp(log(random_))));
  }
  ModelConfig model() {
    ModelConfig c = small_llama();
    c.d = 8 * number(2, 32);
    c.Hkv = number(1, 16);
    c.H = c.Hkv * number(1, 8);
    c.D = 8 * number(8, 512);
    c.F = 8 * number(8, 1024);
    return c;
  }
  Workload workload() {
    if (number(1, 2) == 1) return forward(number(1, 8), number(1, 1500));
    return decode(number(1, 100), 1, number(2, 7000));
  }
  std::string policy() {
    static const std::vector<std::string> names = {"eager", "per-operator", "coda", "unfused"};
    return names[static_cast<std::size_t>(number(1, 4) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

PlanEstimate predicted_with(const std::string& policy, const ModelConfig& c, const Workload& w,
                            const Gpu& gpu) {
  return simulate(make_plan(policy, c, w), gpu, Fidelity::hierarchy);
}

// Tiles, splits and launches: a choice of kernels, within which time is monotone.
bool same_kernels(const PlanEstimate& a, const PlanEstimate& b) {
  if (a.kernels.size() != b.kernels.size()) return false;
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const KernelEstimate &x = a.kernels[i], &y = b.kernels[i];
    if (x.name != y.name || x.tile != y.tile || x.split_k != y.split_k || x.launches != y.launches)
      return false;
  }
  return true;
}

void expect_properties(int shapes, std::uint64_t seed) {
  constexpr double kRounding = 1e-9;
  // Estimates do not say which clusters a tile has, and the library chooses by a quick estimate.
  constexpr double kChoice = 1e-3;
  RandomShapes random(seed);
  const Gpu gpu = load_gpu("h200");
  const Gpu bandwidth = with_what_if(gpu, {.hbm_bandwidth = 2});
  const Gpu l2 = with_what_if(gpu, {.l2_bandwidth = 2});
  // A wave that is fuller draws more from HBM: twice the work may take a little less time.
  // The most that was seen in 3,000 shapes is 2.1 %, of blocks of some 20 us.
  constexpr double kMostFall = 0.03;
  int compared = 0, falls = 0;
  double least = 1;
  for (int i = 0; i < shapes; ++i) {
    const ModelConfig c = random.model();
    const Workload w = random.workload();
    const std::string policy = random.policy();
    const std::string what = policy + " D " + std::to_string(c.D) + " F " + std::to_string(c.F) +
                             " H " + std::to_string(c.H) + "/" + std::to_string(c.Hkv) + " d " +
                             std::to_string(c.d) + ": " + name_of(w.phase) + " " +
                             std::to_string(w.batch) + "x" + std::to_string(w.seq) + " of " +
                             std::to_string(w.context);
    const PlanEstimate e = predicted_with(policy, c, w, gpu);
    EXPECT_GE(e.time.value(), e.limits.time.value() * (1 - kRounding)) << what;
    EXPECT_GE(e.hbm_read + e.hbm_write, e.limits.least) << what;
    const auto expect_not_slower = [&](const char* change, const Gpu& better) {
      const PlanEstimate b = predicted_with(policy, c, w, better);
      if (!same_kernels(e, b)) return;
      EXPECT_LE(b.time.value(), e.time.value() * (1 + kChoice)) << what << ' ' << change;
    };
    expect_not_slower("with twice the HBM bandwidth", bandwidth);
    expect_not_slower("with twice the L2 bandwidth", l2);
    Workload more = w;
    more.batch = 2 * w.batch;
    if (const PlanEstimate b = predicted_with(policy, c, more, gpu); same_kernels(e, b)) {
      ++compared;
      const double ratio = b.time / e.time;
      falls += ratio < 1 - kRounding ? 1 : 0;
      least = std::min(least, ratio);
      EXPECT_GE(ratio, 1 - kMostFall) << what << " with twice the batch";
    }
  }
  std::cout << shapes << " shapes, " << compared << " with the same kernels at twice the batch, "
            << falls << " of them faster there, to " << least << " of the time\n";
  EXPECT_GT(compared, shapes / 20);
}

TEST(Properties, HoldForSomeShapes) { expect_properties(60, 1); }
TEST(LongProperties, HoldForManyShapes) { expect_properties(3000, 2); }

}  // namespace
}  // namespace fuseline
