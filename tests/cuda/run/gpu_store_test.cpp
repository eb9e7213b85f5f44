// Loading and replaying kernels on a real GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "cuda/emit/kernel_source.h"
#include "cuda/run/gemm_launch.h"
#include "cuda/run/timing.h"
#include "model/config/model_files.h"
#include "tests/cuda/run/gpu_support.h"

namespace fuseline::cuda {
namespace {

namespace fs = std::filesystem;

class SlowGpuStore : public test::GpuKernelTest {};

const Program& program_of(const Plan& plan, const std::string& name) {
  return std::ranges::find(plan.kernels, name, &Kernel::name)->phases.front();
}

TEST_F(SlowGpuStore, AWrongFileInTheCacheIsCompiledAnew) {
  if (!device_) return;
  const fs::path folder = fs::temp_directory_path() / "fuseline-wrong-cubins";
  fs::remove_all(folder);
  const Plan plan = make_plan("coda", fuseline::test::tiny_llama(), fuseline::test::forward(1, 64));
  const GemmKernelSource kernel = gemm_kernel_source(
      plan.graph, program_of(plan, "down"), {.m = 128, .n = 128}, SmTarget::sm_90a, "A test.");
  const auto compiled = [&] {
    KernelStore store(*device_, CubinCache(folder, Bytes(100'000'000)));
    (void)store.load(kernel.source);
    return store.compiled();
  };
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(compiled(), 0);  // found
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "no machine code";
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(compiled(), 0);
  fs::remove_all(folder);
}

// Blocks of a cluster must not leave while their neighbour still signals them: launches back to
// back at a tile whose last slabs lie beyond N.
TEST_F(SlowGpuStore, ClustersEndInOrderThousandsOfTimes) {
  if (!device_ || !use(SmTarget::sm_90a)) return;
  const Plan plan = make_plan("coda", load_model("gpt2-xl"), fuseline::test::forward(1, 2048));
  const GpuTensors tensors(*device_, plan);
  const Program& program = program_of(plan, "oproj");
  Stream stream = device_->stream();
  for (const GemmTile& tile : {GemmTile{.m = 128, .n = 128, .cluster_m = 2},
                               GemmTile{.m = 128, .n = 256, .cluster_m = 2}}) {
    const Launches launches = prepare_gemm(
        {*device_, *store_, plan, tensors},
        gemm_kernel_source(plan.graph, program, tile, SmTarget::sm_90a, "A test."), program);
    for (int i = 0; i < 5000; ++i)
      for (const auto& launch : launches) launch->launch(stream);
    EXPECT_NO_THROW(stream.synchronize("5,000 launches"));
  }
}

// The training of SwiGLU stores a product and a result of half its width, one after the other
// through the same buffer where a tile has one. Warps that wrote into each other's rows were seen
// in two of 24 blocks, so there are many tiles and short products between them, many times.
TEST_F(SlowGpuStore, ResultsOfTwoWidthsAreTheSameEachTime) {
  if (!device_ || !use(SmTarget::sm_90a)) return;
  ModelConfig config = fuseline::test::tiny_llama();
  config.D = 512;
  config.F = 2816;
  config.H = config.Hkv = 8;
  config.d = 64;
  const Graph block = build_block(config, fuseline::test::train(1, 2720));
  Plan plan = make_plan("coda", block);
  const executor::Workers workers;
  const auto inputs =
      executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
  auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
  test::ExecutedPlan p(*device_, std::move(plan), std::move(done));
  const Program& program = program_of(p.plan, "gate_up");
  for (const GemmTile& tile : {GemmTile{.m = 272, .n = 128, .cluster_n = 2},
                               GemmTile{.m = 272, .n = 128, .cluster_n = 2, .tail_parts = 2},
                               GemmTile{.m = 160, .n = 256, .cluster_n = 2},
                               GemmTile{.m = 128, .n = 256, .cluster_m = 2}}) {
    std::vector<std::vector<float>> first;
    for (int launch = 0; launch < 20; ++launch) {
      for (const StoredTensorError& e :
           check_gemm(context(p), program, tile, p.tensors, *p.execution.memory)) {
        EXPECT_TRUE(e.finite) << e.tensor;
        EXPECT_LT(e.relative_l2, 2e-3) << e.tensor << " " << tile.m << " x " << tile.n;
      }
      std::vector<std::vector<float>> results;
      for (const Operand& o : stores(program))
        results.push_back(test::numbers_of(p.tensors.download(o.tensor)));
      EXPECT_GT(results.size(), 1U);
      if (launch == 0) first = results;
      EXPECT_TRUE(results == first) << "launch " << launch << " in " << tile.m << " x " << tile.n;
    }
  }
}

}  // namespace
}  // namespace fuseline::cuda
