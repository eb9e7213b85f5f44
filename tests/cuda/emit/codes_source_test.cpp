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
                HasSubstr("using Shipped = Sm90CodesConfig<Shape, WeightCodes<Codes::e4m3, "
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

// Hopper's kernel for few rows, as the simulator chose it.
struct FewRows {
  GemmTile tile;
  GemmKernelSource kernel;
};
FewRows few_rows(const Plan& plan, const Program& program, SmTarget target = SmTarget::sm_90a) {
  const GemmTile tile = choose_tile(gemm_problem_of(program, AddressMap(plan), false),
                                    load_gpu(target == SmTarget::sm_90a ? "h200" : "rtx4090"));
  return {tile, gemm_kernel_source(plan.graph, program, tile, target, "test")};
}

TEST(CodesSources, SimulatorAndSourcesAgreeOnTheKernelForFewRows) {
  int columns = 0, others = 0;
  for (const char* weights : {"int8", "fp8", "int4", "int4:256", "int4:0", "int4:64", "int4-zero",
                              "fp8-block", "mxfp4", "nvfp4"})
    for (const char* model : {"llama2-7b", "llama3-8b", "qwen3-8b", "gpt2-xl", "mixtral-8x7b"})
      for (const std::int64_t batch : {1, 3, 8, 9}) {
        SCOPED_TRACE(fmt::format("{} {} {}", weights, model, batch));
        const Plan plan = plan_of("coda", model, weights, "", Phase::decode, batch);
        for (const Kernel& kernel : plan.kernels) {
          const Program& program = kernel.phases.front();
          const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
          if (gemm == nullptr || !gemm->weight.quantised() || !not_built(program).empty()) continue;
          const FewRows hopper = few_rows(plan, program);
          const GemmConfig& config = hopper.kernel.config;
          ASSERT_EQ(config.columns.has_value(), hopper.tile.whole_depth) << kernel.name;
          ASSERT_EQ(config.tile_n, hopper.tile.n) << kernel.name;
          ASSERT_EQ(config.tile_m, hopper.tile.m) << kernel.name;
          if (config.columns) {
            ++columns;
            EXPECT_LE(gemm->M, kColumnsRows);
            EXPECT_EQ(config.columns->stages, hopper.tile.stages);
            EXPECT_THAT(
                hopper.kernel.source.text,
                HasSubstr(fmt::format("static_assert(Gemm::stages == {}, ", hopper.tile.stages)));
            EXPECT_EQ(hopper.kernel.slab_groups, 4);
          } else {
            ++others;
            EXPECT_THAT(hopper.kernel.source.text, HasSubstr("#include \"gemm_codes.cuh\""));
          }
          const FewRows ampere = few_rows(plan, program, SmTarget::sm_80);
          EXPECT_FALSE(ampere.kernel.config.columns.has_value());
        }
      }
  EXPECT_GT(columns, 50);
  EXPECT_GT(others, 50);
}

// Whoever asks for the other kernel's tile gets that kernel: both can be measured.
TEST(CodesSources, AnotherTileIsTheOtherKernels) {
  const Plan plan = plan_of("coda", "llama2-7b", "int8", "", Phase::decode, 1);
  const Program& program = test::program_of(plan, "down");
  const auto& gemm = std::get<GemmMainloop>(program.mainloop);
  EXPECT_TRUE(source_of(plan, "down", {}).config.columns.has_value());
  EXPECT_FALSE(
      source_of(plan, "down", codes_tile(gemm.M, gemm.N, gemm.K, gemm.groups, gemm.weight, true))
          .config.columns.has_value());
}

class SlowCodesSources : public test::CompileTest {};

TEST_F(SlowCodesSources, ForFewRowsCompileForHopper) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no code for Hopper";
  int sums = 0, two_sums = 0, in_rounds = 0, tables = 0;
  for (const char* weights : {"int8", "fp8", "int4"})
    for (const char* model : {"llama2-7b", "gpt-j-6b", "llama3-8b"})
      for (const std::int64_t batch : {1, 4, 8}) {
        if (model == std::string("llama3-8b") && batch == 4) continue;
        const Plan plan = plan_of("coda", model, weights, "", Phase::decode, batch);
        for (const Kernel& kernel : plan.kernels) {
          const Program& program = kernel.phases.front();
          const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
          if (gemm == nullptr || !gemm->weight.quantised()) continue;
          const auto [tile, source] = few_rows(plan, program);
          if (!source.config.columns) continue;
          SCOPED_TRACE(fmt::format("{} {} {} {}", weights, model, batch, kernel.name));
          sums += source.row_sums > 0 ? 1 : 0;
          two_sums += source.row_sums > 1 ? 1 : 0;
          in_rounds += source.config.columns->stages < source.config.columns->boxes ? 1 : 0;
          tables += epilogue_needs(program).loads_tables ? 1 : 0;
          // A rotation of some of a head's columns keeps one number in memory, behind the mainloop.
          if (epilogue_needs(program).loads_tables)
            EXPECT_LE(compiler_->compile(source.source, SmTarget::sm_90a).use.spill_bytes, 16);
          else
            expect_compiles(source.source, source.function, SmTarget::sm_90a,
                            {"mma.sync", "cp.async.bulk.tensor"});
        }
      }
  EXPECT_GT(sums, 0);
  EXPECT_GT(two_sums, 0);
  EXPECT_GT(in_rounds, 0);
  EXPECT_GT(tables, 0);
}

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
