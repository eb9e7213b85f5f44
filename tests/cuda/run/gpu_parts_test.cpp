// Tiles that are cut along K and added up by all who have a part, on a real GPU: odd sizes, deep
// products of few tiles and products with whole rounds behind the parts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "cuda/emit/kernel_source.h"
#include "sim/block/single_gemm.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/program_streams.h"
#include "tests/cuda/run/gpu_support.h"

namespace fuseline::cuda {
namespace {

TensorId result_of(const Plan& plan) {
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i)
    if (plan.graph.tensors()[i].name == "y") return TensorId{static_cast<std::int32_t>(i)};
  throw InternalError("a product without a result");
}

class SlowGpuParts : public test::GpuKernelTest {
 protected:
  // Both round once to bf16 from fp32 sums in different orders, as SlowGpuGemm says. The second
  // launch finds the workspace as the first one left it.
  void check(std::int64_t m, std::int64_t n, std::int64_t k, const GemmTile& tile) {
    SCOPED_TRACE(fmt::format("{} x {} x {} in {} x {} / {}, {} parts", m, n, k, tile.m, tile.n,
                             tile.cluster(), tile.tail_parts));
    Plan plan = library_gemm_plan({.m = m, .n = n, .k = k, .dtype = Dtype::bf16});
    plan.kernels.front().implementation = Implementation::epilogue_gemm;
    const executor::Workers workers;
    const auto inputs = executor::prepare_inputs(
        plan, executor::random_storage(plan.graph, 7, workers), 7, workers);
    auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
    test::ExecutedPlan p(*device_, std::move(plan), std::move(done));
    const Program& program = p.plan.kernels.front().phases.front();
    ASSERT_GT(
        gemm_kernel_source(p.plan.graph, program, tile, SmTarget::sm_90a, "test").config.tail_parts,
        1);
    std::vector<float> first;
    for (int launch = 0; launch < 3; ++launch) {
      for (const StoredTensorError& e :
           check_gemm(context(p), program, tile, p.tensors, *p.execution.memory)) {
        EXPECT_TRUE(e.finite) << e.tensor;
        EXPECT_LT(e.relative_l2, 2e-3) << e.tensor;
      }
      const std::vector<float> numbers = test::numbers_of(p.tensors.download(result_of(p.plan)));
      if (launch == 0) first = numbers;
      EXPECT_TRUE(numbers == first) << "the same numbers each time";
    }
  }
};

TEST_F(SlowGpuParts, OfDeepProductsEqualTheExecutor) {
  if (!use(SmTarget::sm_90a)) return;
  check(120, 696, 5000, {.m = 128, .n = 64, .tail_parts = 12});
  check(120, 696, 5000, {.m = 128, .n = 128, .cluster_m = 1, .tail_parts = 22});
  check(184, 520, 4104, {.m = 192, .n = 128, .cluster_n = 2, .tail_parts = 16});
  check(72, 328, 2040, {.m = 80, .n = 128, .cluster_n = 2, .tail_parts = 32});
  check(200, 1304, 1208, {.m = 112, .n = 256, .cluster_n = 2, .tail_parts = 5});
}

// A product of random odd sizes in every tile of the menu, in the parts that the simulator takes.
TEST_F(SlowGpuParts, OfEveryTileEqualTheExecutor) {
  if (!use(SmTarget::sm_90a)) return;
  const Gpu gpu = load_gpu("h200");
  std::mt19937 random(3);
  const auto odd = [&random](unsigned most) {
    return static_cast<std::int64_t>(8 * (1 + random() % most) + 8);
  };
  int whole_too = 0, seen = 0;
  for (GemmTile tile : gpu.architecture->tiles.own) {
    if (tile.tail_parts == 1) continue;
    const std::int64_t m = odd(tile.m == 128 ? 160 : 40), n = odd(300), k = odd(400) + 1024;
    const Plan plan = library_gemm_plan({.m = m, .n = n, .k = k, .dtype = Dtype::bf16});
    const Program& program = plan.kernels.front().phases.front();
    tile.tail_parts =
        fastest_tail_parts(gemm_problem_of(program, AddressMap(plan), false), tile, gpu);
    if (tile.tail_parts == 1) continue;
    ++seen;
    const std::int64_t tiles = (m + tile.m - 1) / tile.m * ((n + tile.n - 1) / tile.n);
    whole_too += tiles > 132 ? 1 : 0;
    check(m, n, k, tile);
  }
  EXPECT_GT(seen, 15);
  RecordProperty("with_whole_tiles", whole_too);
  check(2200, 2312, 712, {.m = 128, .n = 256, .cluster_m = 2, .tail_parts = 3});
  check(2200, 2312, 712, {.m = 160, .n = 128, .cluster_n = 2, .tail_parts = 2});
}

}  // namespace
}  // namespace fuseline::cuda
