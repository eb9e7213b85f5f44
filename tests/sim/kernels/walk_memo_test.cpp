#include "sim/kernels/walk_memo.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/parallel_for.h"
#include "sim/block/block_walk.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/remembering_cache.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

void expect_same(const KernelEstimate& a, const KernelEstimate& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.time, b.time) << a.name;
  EXPECT_EQ(a.hbm_read, b.hbm_read) << a.name;
  EXPECT_EQ(a.hbm_write, b.hbm_write) << a.name;
  EXPECT_EQ(a.l2, b.l2) << a.name;
  EXPECT_EQ(a.smem, b.smem) << a.name;
  EXPECT_EQ(a.bound, b.bound) << a.name;
  EXPECT_EQ(a.tile, b.tile) << a.name;
  ASSERT_EQ(a.requested.size(), b.requested.size()) << a.name;
  for (std::size_t i = 0; i < a.requested.size(); ++i)
    EXPECT_EQ(a.requested[i].hbm_read, b.requested[i].hbm_read) << a.name;
}

void expect_same(const std::vector<WalkedKernel>& a, const std::vector<WalkedKernel>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) expect_same(a[i].estimate, b[i].estimate);
}

// A case of odd sizes: a model, a workload, a policy that fits them, a GPU with a small or large
// L2.
struct RandomCase {
  Plan plan;
  Gpu gpu;
  bool replay = false;
};

RandomCase random_case(std::mt19937& random) {
  const auto one_of = [&random](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  ModelConfig model = random() % 3 == 0 ? small_gpt() : small_llama();
  model.F = one_of(704, 1000, 96);
  if (random() % 2 == 0) model.d = 80, model.D = 320;
  const std::int64_t tokens = one_of(1, 17, 64, 130, 333);
  const Workload work =
      random() % 3 == 0 ? decode(one_of(1, 3), 1, tokens + 50) : forward(one_of(1, 2), tokens);
  const char* policy =
      one_of("unfused", "composed", "eager", "xla", "torch-compile", "coda", "whole-block");
  Gpu gpu = load_gpu(random() % 2 == 0 ? "h200" : "rtx4090");
  if (random() % 3 > 0) gpu.l2_capacity = Bytes(one_of(300'000, 2'000'000));
  Plan plan = make_plan(policy, model, work, plan_target(gpu));
  return {std::move(plan), std::move(gpu), random() % 4 == 0};
}

TEST(WalkMemo, PlansGetTheSameWithItAndWithoutIt) {
  std::mt19937 random(5);
  std::vector<RandomCase> cases;
  for (int i = 0; i < 40; ++i) cases.push_back(random_case(random));
  WalkMemo memo;
  // Twice, in another order: most walks of the second turn are known.
  for (const int turn : {0, 1}) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const RandomCase& c = cases[turn == 0 ? i : (i * 7) % cases.size()];
      SCOPED_TRACE(c.plan.policy + " on " + c.gpu.name);
      expect_same(walk_block(c.plan, c.gpu, {.replay = c.replay, .memo = &memo}),
                  walk_block(c.plan, c.gpu, {.replay = c.replay, .memo = nullptr}));
    }
    const std::size_t found = memo.use().found;
    EXPECT_GT(found, turn == 0 ? 0U : memo.use().added) << "turn " << turn;
  }
}

TEST(WalkMemo, LayersBeforeLeaveTheSameHoweverMuchOfThemIsWalked) {
  std::mt19937 random(6);
  for (int i = 0; i < 40; ++i) {
    const RandomCase c = random_case(random);
    SCOPED_TRACE(c.plan.policy + " on " + c.gpu.name);
    for (const int runs : {2, 3}) {
      expect_same(
          walk_block(c.plan, c.gpu, {.replay = c.replay, .runs = runs, .memo = nullptr}),
          walk_block(c.plan, c.gpu,
                     {.replay = c.replay, .runs = runs, .whole_layers = true, .memo = nullptr}));
    }
  }
}

TEST(WalkMemo, APlanOfTheSameKernelsFindsAllOfThem) {
  const Gpu gpu = load_gpu("h200");
  const Plan plan = make_plan("eager", llama_7b(), forward(1, 512), plan_target(gpu));
  WalkMemo memo;
  walk_block(plan, gpu, {.memo = &memo});
  const WalkMemo::Use before = memo.use();
  EXPECT_GT(before.added, 0U);
  walk_block(plan, gpu, {.memo = &memo});
  EXPECT_EQ(memo.use().added, before.added);
  // Constants that set times change no traffic.
  Gpu slower = gpu;
  slower.constants.stream.hbm_fraction *= 0.5;
  walk_block(plan, slower, {.memo = &memo});
  EXPECT_EQ(memo.use().added, before.added);
}

TEST(WalkMemo, ThreadsThatShareItGetTheSame) {
  std::mt19937 random(8);
  std::vector<RandomCase> cases;
  for (int i = 0; i < 12; ++i) cases.push_back(random_case(random));
  std::vector<std::vector<WalkedKernel>> expected;
  for (const RandomCase& c : cases)
    expected.push_back(walk_block(c.plan, c.gpu, {.replay = c.replay, .memo = nullptr}));
  // So small that it forgets all the time.
  WalkMemo memo(std::size_t{1} << 16);
  std::vector<std::vector<WalkedKernel>> got(8 * cases.size());
  parallel_for(got.size(),
               [&](std::size_t i) {
                 const RandomCase& c = cases[i % cases.size()];
                 got[i] = walk_block(c.plan, c.gpu, {.replay = c.replay, .memo = &memo});
               },
               {.threads = 8});
  for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], expected[i % cases.size()]);
}

TEST(WalkMemo, HoldsNoMoreThanItsBudget) {
  constexpr std::size_t kBudget = std::size_t{1} << 18;
  constexpr std::size_t kOneEntry = std::size_t{1} << 14;  // at most, of these walks
  WalkMemo memo(kBudget);
  std::size_t most = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    RememberingCache l2(Bytes(100'000), &memo);
    const CachedMatrix m{1, 64 * (i + 1), 64, 2};
    WalkKey key;
    key.matrix(m);
    const WalkTraffic traffic = l2.walk(key, [&](L2Cache& cache) {
      cache.write(m, 0, std::min<std::int64_t>(m.rows, 640), 0, 64);
      return WalkTraffic{{}, cache.take_traffic(), {}, 0};
    });
    EXPECT_EQ(traffic.hbm.read, Bytes());
    most = std::max(most, memo.use().memory);
  }
  EXPECT_LE(most, kBudget + kOneEntry);
  EXPECT_GT(most, kBudget / 4);
  EXPECT_EQ(memo.use().added, 2000U);
}

}  // namespace
}  // namespace fuseline
