// No plan of a random block is predicted to move less than the least traffic for the memories of
// its GPU: neither through HBM nor, kernel by kernel, out of L2.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/assemble.h"
#include "model/blocks/block.h"
#include "model/implementation.h"
#include "sim/block/limits.h"
#include "sim/gpu/plan_target.h"
#include "sim/nests/traffic_limits.h"
#include "sim/search/kernel_space.h"
#include "tests/sim/property_run.h"

namespace fuseline {
namespace {

// GPUs with little on the chip: there the bound says more than what is touched once.
Gpu small_gpu(std::mt19937& random) {
  static const std::vector<Gpu> kAll = {load_gpu("h200"), load_gpu("a100-sxm-80gb"),
                                        load_gpu("rtx4090")};
  Gpu gpu = kAll[random() % kAll.size()];
  if (random() % 4 == 0) return gpu;
  gpu.l2_capacity = Bytes(std::int64_t{1} << (16 + random() % 8));
  gpu.sm_count = 1 + static_cast<std::int64_t>(random() % 4);
  return gpu;
}

// A plan by random steps: from operators alone, pairs of neighbours join where that is legal.
std::optional<Plan> random_plan(const Graph& block, const RewrittenBlock& rewritten, const Gpu& gpu,
                                std::mt19937& random) {
  KernelSpace space(rewritten, plan_target(gpu), {}, Allowed::own_kernels);
  auto grouping = space.least_fused();
  if (!grouping) return std::nullopt;
  const std::size_t steps = random() % (2 * space.units() + 1);
  for (std::size_t i = 0; i < steps; ++i) {
    std::vector<UnitSet> kernels = space.kernels_of(*grouping);
    const std::size_t a = random() % kernels.size(), b = random() % kernels.size();
    if (a == b || !space.adjacent(kernels[a], kernels[b])) continue;
    kernels[a] |= kernels[b];
    kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(b));
    if (!space.legal(kernels[a > b ? a - 1 : a])) continue;
    const Grouping next = space.grouping_of(kernels);
    if (order_groups(rewritten.graph, space.groups(next))) grouping = next;
  }
  PlanParts parts;
  parts.policy = "search";
  parts.graph = rewritten.graph;
  parts.block = block;
  parts.groups = space.groups(*grouping);
  parts.implement = hand_written_implementation;
  parts.rewrites = rewritten.rewrites;
  parts.preparation = rewritten.preparation;
  parts.target = plan_target(gpu);
  parts.reasons = false;
  return assemble(std::move(parts));
}

void expect_no_plan_below(int plans, std::uint32_t seed) {
  RandomCases cases(seed);
  std::mt19937 random(seed);
  int tried = 0, above = 0, products = 0;
  double tightest = 0, tightest_l2 = 0;
  while (tried < plans) {
    PropertyCase c = cases.next();
    // Small blocks: what a plan's prediction costs follows its bytes.
    c.model.D = std::min<std::int64_t>(c.model.D, 2048);
    c.model.F = std::min<std::int64_t>(c.model.F, 4096);
    c.work.seq = std::min<std::int64_t>(c.work.seq, 1024);
    const Gpu gpu = small_gpu(random);
    const Graph block = build_block(c.model, c.work);
    const std::vector<RewrittenBlock> rewritten = rewritten_blocks(block);
    const Bytes least = least_of_block(block, gpu, on_chip_memory(gpu));
    if (least > limits_of(block, gpu).least) ++above;
    for (int i = 0; i < 4 && tried < plans; ++i) {
      const auto plan = random_plan(block, rewritten[random() % rewritten.size()], gpu, random);
      if (!plan) continue;
      ++tried;
      const PlanEstimate e = simulate(*plan, gpu, Fidelity::hierarchy);
      const Bytes moved = e.hbm_read + e.hbm_write;
      ASSERT_LE(least, moved) << c.text() << ", L2 " << gpu.l2_capacity.value() << ", SMs "
                              << gpu.sm_count;
      tightest = std::max(tightest, least.as_double() / moved.as_double());
      for (const Kernel& k : plan->kernels) {
        const Bytes from_l2 = least_from_l2(*plan, k, gpu);
        if (from_l2.value() == 0) continue;
        ++products;
        Bytes predicted;
        for (const KernelEstimate& of : e.kernels)
          if (of.name == k.name) predicted += of.l2;
        ASSERT_LE(from_l2, predicted) << c.text() << " kernel " << k.name;
        tightest_l2 = std::max(tightest_l2, from_l2.as_double() / predicted.as_double());
      }
    }
  }
  EXPECT_GT(products, plans);
  EXPECT_GT(tightest, 0.9);  // bounds of nothing would pass too
  EXPECT_GT(tightest_l2, 0.9);
  EXPECT_GT(above, 0);  // blocks whose products read weights again
}

TEST(LeastTraffic, IsBelowRandomPlans) { expect_no_plan_below(300, 18); }
TEST(LongLeastTraffic, IsBelowTenThousandRandomPlans) { expect_no_plan_below(10'000, 181); }

}  // namespace
}  // namespace fuseline
