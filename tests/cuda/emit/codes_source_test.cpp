// Products of codes by codes as sources: what Hopper's mainloop multiplies as it is, what stays
// with the kernel that dequantises, and that every kind of tile compiles without spills.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "cuda/emit/codes_source.h"
#include "cuda/emit/kernel_source.h"
#include "cuda/emit/not_built.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/program_streams.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr GemmTile kTileOfCodes{.m = 128, .n = 256, .k = 128, .cluster_m = 2};

Plan plan_of(const std::string& policy, const std::string& model, const std::string& weights,
             const std::string& activations, Phase phase = Phase::forward,
             std::int64_t batch = 16) {
  Workload work = test::workload(phase);
  if (phase == Phase::decode) work.batch = batch;
  work.formats.weights = parse_stored_weight(weights, "", "");
  if (!activations.empty()) work.formats.activations = parse_stored_activation(activations, "", "");
  return make_plan(policy, load_model(model), work);
}

GemmKernelSource source_of(const Plan& plan, const std::string& kernel, const GemmTile& tile,
                           SmTarget target = SmTarget::sm_90a) {
  return gemm_kernel_source(plan.graph, test::program_of(plan, kernel), tile, target, "test");
}

TEST(CodesSources, HopperMultipliesCodesOfBothOperands) {
  const Plan plan = plan_of("coda", "llama2-7b", "fp8", "fp8");
  for (const char* name : {"qkv", "oproj", "gate_up", "down"}) {
    const GemmKernelSource kernel = source_of(plan, name, kTileOfCodes);
    EXPECT_TRUE(kernel.config.of_codes) << name;
    EXPECT_FALSE(kernel.config.codes) << name;
    EXPECT_THAT(kernel.source.text, HasSubstr("#include \"gemm_sm90.cuh\""));
    EXPECT_THAT(kernel.source.text,
                HasSubstr("using Config = Sm90CodesConfig<Shape, WeightCodes<Codes::e4m3, "
                          "ScaleType::fp32, 0, "));
  }
}

// What a bf16 kernel has beside it is the scales alone, at the end.
TEST(CodesSources, ScalesFollowTheOtherArguments) {
  const GemmKernelSource codes =
      source_of(plan_of("unfused", "llama2-7b", "fp8", "fp8"), "oproj", kTileOfCodes);
  const StructLayout whole = gemm_arguments(codes).whole;
  ASSERT_EQ(whole.offsets.size(), 9U);
  EXPECT_EQ(whole.offsets.back() % 64, 0);
  EXPECT_EQ(whole.whole.size - whole.offsets.back(), 64);
}

// The kernel that dequantises keeps all other products, and those of few rows where the simulator
// chooses its tile.
TEST(CodesSources, OthersAreDequantised) {
  const auto dequantises = [](const Plan& plan, const GemmTile& tile, SmTarget target) {
    const GemmKernelSource kernel = source_of(plan, "oproj", tile, target);
    return kernel.config.codes && !kernel.config.of_codes;
  };
  const Plan both = plan_of("coda", "llama2-7b", "fp8", "fp8");
  EXPECT_TRUE(dequantises(both, kTileOfCodes, SmTarget::sm_80));
  EXPECT_TRUE(dequantises(both,
                          codes_tile(16, 4096, 4096, {}, parse_stored_weight("fp8", "", ""), true),
                          SmTarget::sm_90a));
  EXPECT_FALSE(dequantises(both, kTileOfCodes, SmTarget::sm_90a));
  EXPECT_TRUE(dequantises(plan_of("coda", "llama2-7b", "fp8", ""), kTileOfCodes, SmTarget::sm_90a));
  EXPECT_TRUE(
      dequantises(plan_of("coda", "llama2-7b", "int8", "int8"), kTileOfCodes, SmTarget::sm_90a));
  EXPECT_TRUE(dequantises(plan_of("coda", "llama2-7b", "fp8-block", "fp8-block"), kTileOfCodes,
                          SmTarget::sm_90a));
}

class SlowCodesSources : public test::CompileTest {};

// Every kind of tile, behind it epilogues with and without loads, tables, pairs and biases.
TEST_F(SlowCodesSources, OfEveryKindOfTileCompile) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no code for Hopper";
  int turned = 0, in_parts = 0, shared = 0, tables = 0;
  for (const char* model : {"llama2-7b", "gpt2-xl"})
    for (const char* policy : {"coda", "unfused"}) {
      const Plan plan = plan_of(policy, model, "fp8", "fp8");
      for (const Kernel& kernel : plan.kernels) {
        const Program& program = kernel.phases.front();
        const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
        if (gemm == nullptr || !gemm->activation.quantised()) continue;
        ASSERT_EQ(not_built(program), "");
        const EpilogueNeeds needs = epilogue_needs(program);
        for (const GemmTile& tile :
             {kTileOfCodes, GemmTile{.m = 128, .n = 192, .k = 128, .tail_parts = 3},
              GemmTile{.m = 64, .n = 256, .k = 128, .cluster_m = 2},
              GemmTile{.m = 64, .n = 192, .k = 128, .cluster_k = 4},
              GemmTile{.m = 160, .n = 256, .k = 128, .cluster_n = 2}}) {
          if (!fits(needs, tile)) continue;
          const GemmKernelSource source =
              gemm_kernel_source(plan.graph, program, tile, SmTarget::sm_90a, "test");
          ASSERT_TRUE(source.config.of_codes);
          turned += source.config.turned ? 1 : 0;
          shared += source.config.tail_parts > 1 ? 1 : 0;
          tables += needs.loads_tables ? 1 : 0;
          expect_compiles(source.source, source.function, SmTarget::sm_90a,
                          {"wgmma.mma_async.sync.aligned.m64n", ".f32.e4m3.e4m3"});
        }
      }
    }
  const Plan few = plan_of("coda", "llama2-7b", "fp8", "fp8", Phase::decode);
  for (const char* name : {"qkv", "oproj", "gate_up", "down"}) {
    const GemmKernelSource source =
        source_of(few, name, {.m = 64, .n = 128, .k = 128, .cluster_k = 4});
    in_parts += source.config.cluster_k > 1 ? 1 : 0;
    expect_compiles(source.source, source.function, SmTarget::sm_90a, {".f32.e4m3.e4m3"});
  }
  EXPECT_GT(turned, 0);
  EXPECT_GT(shared, 0);
  EXPECT_GT(in_parts, 0);
  EXPECT_GT(tables, 0);
}

// Few rows have the most thread blocks beside each other, and so the fewest registers.
TEST_F(SlowCodesSources, OfEveryFormatCompileForFewRows) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no code for Hopper";
  for (const char* weights :
       {"fp8", "fp8-block", "int8", "int4", "int4-zero", "int4:32", "int4:64", "mxfp4", "nvfp4"})
    for (const auto& [model, kernel] :
         {std::pair("llama2-7b", "oproj"), std::pair("llama2-7b", "qkv"),
          std::pair("mixtral-8x7b", "expert_down")}) {
      SCOPED_TRACE(fmt::format("{} {}", weights, model));
      const Plan plan = plan_of("coda", model, weights, "", Phase::decode, 4);
      const Program& program = test::program_of(plan, kernel);
      const auto& gemm = std::get<GemmMainloop>(program.mainloop);
      ASSERT_EQ(not_built(program), "");
      EXPECT_NE(gemm.groups.empty(), kernel == std::string("expert_down"));
      const GemmTile tile = codes_tile(gemm.M, gemm.N, gemm.K, gemm.groups, gemm.weight, true);
      ASSERT_EQ(tile.m, kCodesLowestTile);
      const GemmKernelSource source =
          gemm_kernel_source(plan.graph, program, tile, SmTarget::sm_90a, "test");
      // One warp keeps some of a rotation's 96 numbers in memory, once a tile, behind the mainloop.
      // A third thread block is worth more than that.
      if (kernel == std::string("qkv"))
        EXPECT_LE(compiler_->compile(source.source, SmTarget::sm_90a).use.spill_bytes, 64);
      else
        expect_compiles(source.source, source.function, SmTarget::sm_90a, {"mma.sync"});
    }
}

}  // namespace
}  // namespace fuseline::cuda
