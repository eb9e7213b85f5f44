// Variants of our Hopper GEMM, which `gemm --measure --variants` times: they compile without
// spills, and what is shipped does not know of them. No GPU is asked.
#include "cuda/emit/gemm_variant.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda/compile/cubin_cache.h"
#include "cuda/driver/recorded_driver.h"
#include "cuda/emit/kernel_source.h"
#include "cuda/run/gemm_launch.h"
#include "cuda/run/gpu_tensors.h"
#include "cuda/run/kernel_store.h"
#include "sim/block/single_gemm.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

// Rows of x and w begin at odd multiples of 16 bytes.
Plan odd_product(std::int64_t m) {
  return library_gemm_plan({.m = m, .n = 2584, .k = 2472, .dtype = Dtype::bf16});
}

std::optional<GemmKernelSource> varied(const Plan& plan, const GemmTile& tile,
                                       const GemmVariant& variant,
                                       SmTarget target = SmTarget::sm_90a) {
  return gemm_variant_source(plan.graph, plan.kernels.front().phases.front(), tile, target, "test",
                             variant);
}

const GemmVariant& variant_named(const std::string& name) {
  return *std::ranges::find(gemm_variants(), name, &GemmVariant::name);
}

// Of every kind of tile: cooperative, ping-pong, parts of K, shared last tiles, turned.
const std::vector<GemmTile>& tiles_of_all_kinds() {
  static const std::vector<GemmTile> tiles = {
      {.m = 128, .n = 256, .cluster_m = 2}, {.m = 128, .n = 192, .cluster_m = 2, .tail_parts = 3},
      {.m = 64, .n = 128, .cluster_m = 1},  {.m = 64, .n = 64, .cluster_k = 4},
      {.m = 304, .n = 128, .cluster_n = 2}, {.m = 176, .n = 128, .cluster_n = 2},
  };
  return tiles;
}

class SlowGemmVariants : public test::CompileTest {};

TEST_F(SlowGemmVariants, CompileWithoutSpills) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no sm_90a code";
  const Plan plan = odd_product(2008);
  for (const GemmTile& tile : tiles_of_all_kinds())
    for (const GemmVariant& v : gemm_variants()) {
      SCOPED_TRACE(fmt::format("{} x {}, {}", tile.m, tile.n, v.name));
      if (const auto kernel = varied(plan, tile, v))
        expect_compiles(kernel->source, kernel->function, SmTarget::sm_90a, {"wgmma.mma_async"});
    }
}

TEST(GemmVariant, IsInTheKernelOrInItsLaunch) {
  const Plan plan = odd_product(2008);
  const GemmTile tile{.m = 128, .n = 256, .cluster_m = 2};
  const GemmKernelSource shipped = gemm_kernel_source(
      plan.graph, plan.kernels.front().phases.front(), tile, SmTarget::sm_90a, "test");
  EXPECT_THAT(shipped.source.text, Not(HasSubstr("half_boxes")));
  const auto code = [](const GemmKernelSource& kernel) {
    return test::code_of(kernel.source.text, kernel.function);
  };
  for (const char* name : {"promotion-256", "promotion-128", "promotion-none"})
    EXPECT_EQ(code(*varied(plan, tile, variant_named(name))), code(shipped)) << name;
  EXPECT_THAT(code(*varied(plan, tile, variant_named("half-boxes"))),
              HasSubstr("half_boxes = true, store_by_threads = false"));
  EXPECT_THAT(code(*varied(plan, tile, variant_named("store-by-threads"))),
              HasSubstr("half_boxes = false, store_by_threads = true"));
  EXPECT_THAT(code(*varied(plan, tile, variant_named("cluster-4"))),
              HasSubstr("__cluster_dims__(4, 1, 1)"));
}

TEST(GemmVariant, ChangesNothingWhereItDoesNotApply) {
  const Plan plan = odd_product(200);
  const GemmVariant& four = variant_named("cluster-4");
  EXPECT_FALSE(varied(plan, {.m = 128, .n = 256, .cluster_m = 2}, four)) << "two tiles below";
  EXPECT_FALSE(varied(plan, {.m = 64, .n = 128, .cluster_m = 1}, four)) << "no cluster";
  EXPECT_FALSE(varied(plan, {.m = 176, .n = 128, .cluster_n = 2}, four)) << "44 rows of a box";
  EXPECT_TRUE(varied(plan, {.m = 96, .n = 128, .cluster_n = 2}, four));
  EXPECT_FALSE(varied(plan, {.m = 128, .n = 256}, variant_named("half-boxes"), SmTarget::sm_80));
}

TEST(GemmVariant, NamesAreReadWithTheNearestOfThem) {
  EXPECT_EQ(parse_gemm_variants("--variants", "all").size(), gemm_variants().size());
  const auto two = parse_gemm_variants("--variants", "half-boxes,promotion-128,half-boxes");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].name, "half-boxes");
  EXPECT_EQ(two[1].l2_promotion, 128);
  EXPECT_THROW((void)parse_gemm_variants("--variants", ""), InputError);
  try {
    (void)parse_gemm_variants("--variants", "half-box");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("half-boxes"));
  }
}

// These take the driver's classes, which need the toolkit's headers.
#if FUSELINE_HAS_CUDA

class GemmVariantLaunch : public test::CompileTest {};

Device recorded_hopper() {
  return recorded_device({.name = "recorded",
                          .major = 9,
                          .minor = 0,
                          .multiprocessors = 132,
                          .memory = Bytes(std::int64_t{80} << 30),
                          .l2 = Bytes(std::int64_t{50} << 20),
                          .shared_per_block = Bytes(227 * 1024),
                          .driver = ""});
}

// What the copy engine is told about both operands, and how many thread blocks there are.
TEST_F(GemmVariantLaunch, DescribesItsBoxesToTheCopyEngine) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no sm_90a code";
  const Plan plan = odd_product(2008);
  const Device device = recorded_hopper();
  KernelStore store(device, CubinCache::standard());
  const GpuTensors tensors(device, plan);
  // CUtensorMapSwizzle and CUtensorMapL2promotion: 0 none, then 32 (64), 64 (128), 128 (256) bytes.
  struct Wanted {
    const char* variant;
    std::uint32_t columns, swizzle, promotion, blocks;
  };
  // Rows begin at odd multiples of 16 bytes and are read many times: 128 bytes, if nothing is said.
  for (const Wanted& w : {Wanted{"promotion-256", 64, 3, 3, 132},
                          {"promotion-none", 64, 3, 0, 132},
                          {"half-boxes", 32, 2, 2, 132},
                          {"cluster-4", 64, 3, 2, 120}}) {
    SCOPED_TRACE(w.variant);
    const auto kernel =
        varied(plan, {.m = 128, .n = 256, .cluster_m = 2}, variant_named(w.variant));
    ASSERT_TRUE(kernel);
    const Launches launches =
        prepare_gemm({device, store, plan, tensors}, *kernel, plan.kernels.front().phases.front());
    ASSERT_EQ(launches.size(), 1U);
    const auto& launch = dynamic_cast<const KernelLaunch&>(*launches[0]);
    EXPECT_EQ(launch.shape().grid[0], w.blocks);
    const std::span<const std::byte> bytes(launch.parameters().at(0));
    for (const std::size_t at : {std::size_t{0}, std::size_t{128}}) {
      const auto map = recorded_map(bytes.subspan(at));
      ASSERT_TRUE(map);
      EXPECT_EQ(map->box[0], w.columns);
      EXPECT_EQ(map->swizzle, w.swizzle);
      EXPECT_EQ(map->promotion, w.promotion);
    }
  }
}

// CUtensorMapL2promotion of both operands' maps as they are shipped: the mainloop's first, then its
// second.
std::pair<std::uint32_t, std::uint32_t> shipped_promotions(const Device& device, KernelStore& store,
                                                           const Plan& plan, const GemmTile& tile) {
  const Program& program = plan.kernels.front().phases.front();
  const GpuTensors tensors(device, plan);
  const GemmKernelSource kernel =
      gemm_kernel_source(plan.graph, program, tile, SmTarget::sm_90a, "test");
  const Launches launches = prepare_gemm({device, store, plan, tensors}, kernel, program);
  const auto& launch = dynamic_cast<const KernelLaunch&>(*launches.at(0));
  const std::span<const std::byte> bytes(launch.parameters().at(0));
  return {recorded_map(bytes.subspan(0))->promotion, recorded_map(bytes.subspan(128))->promotion};
}

TEST_F(GemmVariantLaunch, L2FetchesFewerBytesOfRowsBetweenLinesThatAreReadAgain) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no sm_90a code";
  const Device device = recorded_hopper();
  KernelStore store(device, CubinCache::standard());
  constexpr std::uint32_t k128 = 2, k256 = 3;
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  const GemmTile upright{.m = 128, .n = 256, .cluster_m = 2};
  const GemmTile turned{.m = 96, .n = 128, .cluster_n = 2};
  EXPECT_EQ(shipped_promotions(device, store, odd_product(2008), upright), Pair(k128, k128));
  // One tile below: each row of the weights is read once. Those of the tokens are read ten times.
  EXPECT_EQ(shipped_promotions(device, store, odd_product(88), upright), Pair(k128, k256));
  // Of a turned tile the weights are the first operand.
  EXPECT_EQ(shipped_promotions(device, store, odd_product(88), turned), Pair(k256, k128));
  EXPECT_EQ(shipped_promotions(device, store, odd_product(152), turned), Pair(k128, k128));
  const Plan even = library_gemm_plan({.m = 2008, .n = 2584, .k = 2496, .dtype = Dtype::bf16});
  EXPECT_EQ(shipped_promotions(device, store, even, upright), Pair(k256, k256));
}

#endif

}  // namespace
}  // namespace fuseline::cuda
