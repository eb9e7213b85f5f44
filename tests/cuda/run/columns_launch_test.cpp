// What Hopper's kernel for weights in codes and few rows is given. No GPU is asked.
#include "cuda/run/columns_launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cuda/compile/cubin_cache.h"
#include "cuda/driver/recorded_driver.h"
#include "cuda/run/gemm_launch.h"
#include "cuda/run/gpu_tensors.h"
#include "cuda/run/kernel_store.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/kernels/codes_columns.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

// These take the driver's classes, which need the toolkit's headers.
#if FUSELINE_HAS_CUDA

class ColumnsLaunch : public test::CompileTest {};

std::int32_t number_at(std::span<const std::byte> bytes, std::int64_t at) {
  std::int32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

TEST_F(ColumnsLaunch, GivesTheKernelItsWeightsSizesAndSums) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no code for Hopper";
  Workload work{.phase = Phase::decode, .batch = 3, .seq = 1, .context = 300};
  work.formats.weights = parse_stored_weight("int8", "", "");
  const Plan plan = make_plan("coda", load_model("llama2-7b"), work);
  // Of any number of multiprocessors: the form is the source's.
  const Device device = recorded_device({.name = "recorded",
                                         .major = 9,
                                         .minor = 0,
                                         .multiprocessors = 114,
                                         .memory = Bytes(std::int64_t{80} << 30),
                                         .l2 = Bytes(std::int64_t{50} << 20),
                                         .shared_per_block = Bytes(227 * 1024),
                                         .driver = ""});
  KernelStore store(device, CubinCache::standard());
  const GpuTensors tensors(device, plan);
  for (const auto& [name, sums] : {std::pair("gate_up", false), std::pair("oproj", true)}) {
    SCOPED_TRACE(name);
    const Program& program = test::program_of(plan, name);
    const auto& gemm = std::get<GemmMainloop>(program.mainloop);
    const GemmKernelSource kernel =
        gemm_kernel_source(plan.graph, program, {.m = 8, .n = 128}, SmTarget::sm_90a, "test");
    ASSERT_TRUE(kernel.config.columns);
    const std::int64_t columns = kernel.config.columns->columns;

    const LaunchContext context{device, store, plan, tensors};
    const Launches launches = prepare_gemm(context, kernel, program);
    ASSERT_EQ(launches.size(), 1U);
    const auto& launch = dynamic_cast<const KernelLaunch&>(*launches[0]);
    EXPECT_EQ(launch.shape().grid[0], ceil_div(gemm.N, columns));
    EXPECT_EQ(launch.shape().block[0], kColumnsThreads);
    EXPECT_GE(launch.shape().shared_bytes,
              kernel.config.columns->stages * columns * kColumnsBoxBytes);

    // CodesColumnsArgs of kernels/sm90/codes_columns.cuh.
    const std::vector<std::int64_t>& at = gemm_arguments(kernel).whole.offsets;
    const std::span<const std::byte> bytes(launch.parameters().at(0));
    const auto map = recorded_map(bytes.subspan(static_cast<std::size_t>(at[0])));
    ASSERT_TRUE(map);
    EXPECT_EQ(map->address, tensors.matrix(gemm.b).address);
    EXPECT_EQ(map->box[0], kColumnsBoxBytes);
    EXPECT_EQ(map->box[1], columns);
    EXPECT_EQ(number_at(bytes, at[3]), gemm.M);
    EXPECT_EQ(number_at(bytes, at[3] + 4), gemm.N);
    EXPECT_EQ(number_at(bytes, at[3] + 8), 2 * gemm.K) << "bytes of a row of A";

    // A number of every row and strip, and a counter for every 128 columns, which begins at zero.
    EXPECT_EQ(kernel.row_sums > 0, sums);
    ASSERT_EQ(launch.workspaces().size(), sums ? 2U : 0U);
    if (!sums) continue;
    const DeviceBuffer& counters = launch.workspaces()[1];
    EXPECT_EQ(launch.workspaces()[0].size(), Bytes(gemm.N / kColumnsStrip * kColumnsRows * 4));
    std::vector<std::byte> held(static_cast<std::size_t>(gemm.N / 128 * 4), std::byte{1});
    counters.download(held);
    EXPECT_EQ(std::ranges::count(held, std::byte{0}), std::ssize(held));
  }
}

#endif

}  // namespace
}  // namespace fuseline::cuda
