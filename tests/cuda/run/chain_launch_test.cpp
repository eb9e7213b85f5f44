// A chain of two products as a launch: what the kernel is given. No GPU is asked.
#include "cuda/run/chain_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <variant>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/emit/plan_source.h"
#include "cuda/export/recorded_plan.h"
#include "model/blocks/block.h"
#include "model/chain.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "tests/cuda/needs.h"

namespace fuseline::cuda {
namespace {

class ChainLaunch : public test::NeedsCompiler {};

// GPT-2's feed-forward layer in one kernel, and no other kernel.
Plan feed_forward(const Gpu& gpu) {
  const Workload work{.phase = Phase::decode, .batch = 2, .seq = 1, .context = 1024};
  Plan plan = make_custom_plan(build_block(load_model("gpt2-large"), work), {"chain_products"},
                               {{"up", "up_bias"}, {"up_bias", "gelu"}, {"gelu", "down"}},
                               plan_target(gpu));
  std::erase_if(plan.kernels, [](const Kernel& k) { return !handed_over(k); });
  return plan;
}

std::int32_t number_at(const std::vector<std::byte>& bytes, std::int64_t at) {
  std::int32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

TEST_F(ChainLaunch, GivesTheKernelItsMatricesSizesAndWorkspaces) {
  const Gpu gpu = load_gpu("h200");
  const Plan plan = feed_forward(gpu);
  ASSERT_EQ(plan.kernels.size(), 1U);
  const Kernel& kernel = plan.kernels.front();
  const auto& first = std::get<GemmMainloop>(kernel.phases[0].mainloop);
  const auto& second = std::get<GemmMainloop>(kernel.phases[1].mainloop);
  const ChainKernelSource source =
      chain_of(plan, kernel, gpu.sm_count, plan_target(gpu).shared_bytes_per_block);

  const RecordedPlan recorded = record_plan(plan, gpu, 2);
  ASSERT_EQ(recorded.launches.size(), 1U);
  const RecordedLaunch& launch = recorded.launches[0];
  EXPECT_EQ(launch.shape.grid[0], source.layout.blocks);
  EXPECT_LE(launch.shape.grid[0], gpu.sm_count);  // they wait for each other
  EXPECT_EQ(launch.shape.block[0], chain_threads);
  EXPECT_EQ(launch.shape.shared_bytes, source.shared_bytes);
  EXPECT_TRUE(launch.maps.empty());

  // ChainArgs of kernels/chain.cuh.
  ASSERT_EQ(launch.parameters.size(), 1U);
  const std::vector<std::byte>& bytes = launch.parameters[0];
  const std::int32_t blocks_columns = static_cast<std::int32_t>(source.layout.columns);
  const std::vector<std::int64_t> wanted = {2,       first.K, second.K, second.N,
                                            first.K, first.K, second.K, blocks_columns};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(number_at(bytes, 40 + 4 * static_cast<std::int64_t>(i)), wanted[i]) << i;
  const auto target = [&](std::int64_t offset) {
    const auto found = std::ranges::find(launch.addresses, offset, &AddressPlace::offset);
    if (found == launch.addresses.end()) {
      ADD_FAILURE() << "no address at " << offset;
      return -100;
    }
    EXPECT_EQ(found->addend, 0);
    return found->target;
  };
  EXPECT_EQ(target(0), first.a.tensor.index);
  EXPECT_EQ(target(8), first.b.tensor.index);
  EXPECT_EQ(target(16), second.b.tensor.index);
  const std::size_t parts = static_cast<std::size_t>(-1 - target(24));
  const std::size_t counter = static_cast<std::size_t>(-1 - target(32));
  EXPECT_EQ(recorded.workspaces.at(parts).bytes, source.layout.blocks * 2 * second.N * 4);
  EXPECT_TRUE(recorded.workspaces.at(counter).contents.empty());  // zeros

  // Every operand of the epilogues has an address but h, which no memory has.
  const ChainArguments layout = chain_arguments(source);
  EXPECT_EQ(static_cast<std::int64_t>(bytes.size()), layout.whole.whole.size);
  const TensorId h = handed_over(kernel)->tensor;
  std::size_t places = 5;
  for (const auto& [fields, each, at] :
       {std::tuple(source.first, layout.first, layout.whole.offsets[2]),
        std::tuple(source.second, layout.second, layout.whole.offsets[3])}) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].operand.tensor == h) continue;
      ++places;
      const bool mapped = layout_of(fields[i].kind).size == 192;
      EXPECT_EQ(target(at + each.offsets[i] + (mapped ? 128 : 0)), fields[i].operand.tensor.index)
          << fields[i].name;
    }
  }
  EXPECT_EQ(launch.addresses.size(), places);
}

// A GPU with fewer multiprocessors gets fewer and larger blocks.
TEST_F(ChainLaunch, HasABlockForEachMultiprocessorAtMost) {
  for (const std::int64_t sms : {1, 7, 108, 132, 1000}) {
    const Gpu gpu = load_gpu("h200");
    const Plan plan = feed_forward(gpu);
    const Kernel& kernel = plan.kernels.front();
    const ChainLayout layout = chain_layout(kernel, sms).value();
    EXPECT_LE(layout.blocks, sms);
    EXPECT_GE(layout.blocks * layout.columns, handed_over(kernel)->cols);
    EXPECT_LT((layout.blocks - 1) * layout.columns, handed_over(kernel)->cols);
  }
}

}  // namespace
}  // namespace fuseline::cuda
