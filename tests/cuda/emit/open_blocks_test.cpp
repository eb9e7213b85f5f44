// Kernels of blocks beyond LLaMA and GPT become machine code, or are refused by what is missing.
#include <gtest/gtest.h>

#include <string>

#include "cuda/emit/not_built.h"
#include "cuda/emit/plan_source.h"
#include "model/activation_formats/stored_activation.h"
#include "model/cache_formats/stored_cache.h"
#include "sim/kernels/epilogue_needs.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/sim/open_blocks.h"

namespace fuseline::cuda {
namespace {

using fuseline::test::BlockSizes;

class OpenBlocks : public test::CompileTest {
 protected:
  void expect_plan_compiles(const std::string& policy, const Graph& graph, const char* gpu_name,
                            std::set<std::string>& missing) {
    expect_plan_compiles(make_plan(policy, graph), gpu_name, missing);
  }
  // Compiles what has kernels; the others are named in `missing`.
  void expect_plan_compiles(const Plan& plan, const char* gpu_name,
                            std::set<std::string>& missing) {
    const Gpu gpu = load_gpu(gpu_name);
    const SmTarget target = target_of(gpu);
    if (!makes(target)) GTEST_SKIP() << "the toolkit does not make code for " << gpu_name;
    for (const Kernel& kernel : plan.kernels) {
      SCOPED_TRACE(plan.policy + ' ' + kernel.name);
      for (const Program& program : kernel.phases)
        if (const std::string what = not_built(program); !what.empty()) missing.insert(what);
      if (std::ranges::any_of(kernel.phases,
                              [](const Program& p) { return !not_built(p).empty(); }))
        continue;
      for (const Source& source : kernel_sources(plan, kernel, gpu, target))
        expect_compiles(source, source.name, target, {},
                        rotates_behind_codes(kernel)           ? 64
                        : stores_around_gelu_on_ampere(source) ? 16
                                                               : 0);
    }
  }
  // On Ampere a product that is stored before and after GELU takes all 255 registers of a thread
  // beside 128 sums, and spills up to four more. Open: narrower slabs spill one.
  static bool stores_around_gelu_on_ampere(const Source& source) {
    const std::size_t gelu = source.text.find("= gelu_");
    return source.text.find("gemm_sm80.cuh") != std::string::npos && gelu != std::string::npos &&
           source.text.find("store_tile(") < gelu &&
           source.text.find("store_tile(", gelu) != std::string::npos;
  }
  // Of weights in codes, RoPE behind the product keeps some of a rotation's numbers in memory, once
  // a tile: a third thread block is worth more (SlowCodesSources.OfEveryFormatCompileForFewRows).
  static bool rotates_behind_codes(const Kernel& kernel) {
    return std::ranges::any_of(kernel.phases, [](const Program& program) {
      const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
      return gemm != nullptr && gemm->weight.quantised() && epilogue_needs(program).loads_tables;
    });
  }

  // Forward under every policy of several launches, and training under those that train.
  std::set<std::string> expect_block_compiles(const Graph& graph, bool trains,
                                              const std::vector<const char*>& gpus = {
                                                  "h200", "a100-sxm-80gb"}) {
    std::set<std::string> missing;
    for (const char* gpu : gpus)
      for (const PolicyInfo& policy : policies()) {
        if (policy.name == "custom" || policy.name == "whole-block") continue;
        expect_plan_compiles(policy.name, graph, gpu, missing);
        if (trains && policy.trains)
          expect_plan_compiles(policy.name, differentiate(graph), gpu, missing);
      }
    return missing;
  }
};

BlockSizes sizes(std::int64_t width) {
  return {.batch = 2,
          .tokens = 256,
          .model = 512,
          .inner = 1024,
          .heads = 8,
          .kv_heads = 4,
          .width = width};
}

TEST_F(OpenBlocks, NormsOfHeadsCompile) {
  EXPECT_EQ(expect_block_compiles(fuseline::test::qwen3_like(sizes(32)), true),
            std::set<std::string>{});
}

// Heads of 128 columns are wider than what an epilogue sees at once.
TEST_F(OpenBlocks, WideHeadsBehindAProductCompile) {
  std::set<std::string> missing;
  for (const char* gpu : {"h200", "a100-sxm-80gb"})
    expect_plan_compiles("coda", fuseline::test::qwen3_like(sizes(128)), gpu, missing);
  for (const Phase phase : {Phase::forward, Phase::decode})
    expect_plan_compiles(make_plan("coda", load_model("qwen3-8b"), test::workload(phase)), "h200",
                         missing);
  EXPECT_EQ(missing, std::set<std::string>{});
}

TEST_F(OpenBlocks, GatedGeluCompiles) {
  EXPECT_EQ(expect_block_compiles(fuseline::test::gemma2_like(sizes(64), 0), true),
            std::set<std::string>{});
}

// Capped scores: Hopper's kernel has heads of 64 and 128 columns, the generic one all others.
TEST_F(OpenBlocks, CappedScoresCompile) {
  std::set<std::string> missing;
  for (const std::int64_t width : {64, 128})
    for (const char* gpu : {"h200", "a100-sxm-80gb"})
      expect_plan_compiles("coda", fuseline::test::gemma2_like(sizes(width), 30), gpu, missing);
  for (const Phase phase : {Phase::forward, Phase::decode}) {
    Workload work = test::workload(phase);
    work.batch = 1;
    for (const char* gpu : {"h200", "a100-sxm-80gb"})
      for (const char* policy : {"eager", "torch-compile", "coda"})
        expect_plan_compiles(make_plan(policy, load_model("gemma2-9b"), work), gpu, missing);
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

// Norms behind each branch: their last kernels leave partial sums for the next norm.
TEST_F(OpenBlocks, FourNormsCompile) {
  std::set<std::string> missing;
  const auto compile = [&](const char* model, Phase phase, const char* gpu) {
    expect_plan_compiles(make_plan("coda", load_model(model), test::workload(phase)), gpu, missing);
  };
  for (const char* model : {"glm4", "gemma3"}) {
    compile(model, Phase::forward, "h200");
    compile(model, Phase::decode, "h200");
    compile(model, Phase::forward, "a100-sxm-80gb");
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

// Latent attention: keys of 192 columns and values of 128, or one key of 576 columns that has the
// value in its last 512 and serves all query heads. Few and many query heads take other tiles.
TEST_F(OpenBlocks, LatentAttentionCompiles) {
  std::set<std::string> missing;
  for (const char* model : {"deepseek-v2-lite", "deepseek-v3"})
    for (const Phase phase : {Phase::forward, Phase::decode}) {
      Workload work = test::workload(phase);
      work.batch = 1;
      for (const char* gpu : {"h200", "a100-sxm-80gb"})
        for (const char* policy : {"unfused", "per-operator", "torch-compile", "coda"})
          expect_plan_compiles(make_plan(policy, load_model(model), work), gpu, missing);
    }
  EXPECT_EQ(missing, std::set<std::string>{});
}

// Weights, activations and caches in codes: formats that differ in how they become numbers, few
// rows and many. The suites on a GPU have all formats.
TEST_F(OpenBlocks, NumbersInCodesCompile) {
  std::set<std::string> missing;
  const ModelConfig model = load_model("llama2-7b");
  for (const char* gpu : {"h200", "a100-sxm-80gb"}) {
    for (const char* weights : {"int4", "fp8-block"})
      for (const std::int64_t rows : {1, 512}) {
        Workload work = test::workload(Phase::decode);
        work.batch = rows;
        work.context = 512;
        work.formats.weights = parse_stored_weight(weights, "", "");
        expect_plan_compiles(make_plan("coda", model, work), gpu, missing);
      }
    Workload work = test::workload(Phase::forward);
    work.formats.activations = parse_stored_activation("int8", "", "");
    work.formats.weights = parse_stored_weight("int8", "", "");
    expect_plan_compiles(make_plan("coda", model, work), gpu, missing);
    for (const char* cache : {"fp8", "int8"}) {
      Workload decode = test::workload(Phase::decode);
      decode.formats.cache = parse_stored_cache(cache, "", "");
      for (const char* policy : {"coda", "per-operator"})
        expect_plan_compiles(make_plan(policy, model, decode), gpu, missing);
    }
  }
  // A norm that makes codes of 128 columns each, behind sums over its rows.
  Workload blocks = test::workload(Phase::forward);
  blocks.formats.weights = parse_stored_weight("fp8-block", "", "");
  blocks.formats.activations = parse_stored_activation("fp8-block", "", "");
  expect_plan_compiles(make_plan("torch-compile", model, blocks), "h200", missing);
  EXPECT_EQ(missing, std::set<std::string>{});
}

// Rows of gate and of up take turns, and each has the scales of its own blocks, experts' too.
TEST_F(OpenBlocks, PairsWithScalesOfTwoBlocksCompile) {
  std::set<std::string> missing;
  for (const char* gpu : {"h200", "a100-sxm-80gb"})
    for (const char* model : {"llama2-7b", "mixtral-8x7b"})
      for (const std::int64_t rows : {1, 512}) {
        Workload work = test::workload(Phase::decode);
        work.batch = rows;
        work.context = 512;
        work.formats.weights = parse_stored_weight("fp8-block", "", "");
        const Plan plan = make_plan("coda", load_model(model), work);
        const auto pairs = [](const Kernel& kernel) {
          const auto* gemm = std::get_if<GemmMainloop>(&kernel.phases.front().mainloop);
          return gemm != nullptr && gemm->weight.pairs;
        };
        EXPECT_EQ(std::ranges::count_if(plan.kernels, pairs), 1) << model;
        expect_plan_compiles(plan, gpu, missing);
      }
  EXPECT_EQ(missing, std::set<std::string>{});
}

TEST_F(OpenBlocks, PartialRotationsCompile) {
  for (const Pairs& pairs : {Pairs{.head_width = 64, .interleaved = true, .rotated = 16},
                             Pairs{.head_width = 64, .rotated = 32}}) {
    const std::set<std::string> missing =
        expect_block_compiles(fuseline::test::parallel_block(sizes(64), pairs), true);
    EXPECT_EQ(missing, std::set<std::string>{});
  }
  std::set<std::string> missing;
  const Pairs odd{.head_width = 80, .rotated = 32};
  expect_plan_compiles("per-operator", fuseline::test::parallel_block(sizes(80), odd), "h200",
                       missing);
  EXPECT_EQ(missing, std::set<std::string>{});
}

// T5 adds a number for every distance of query and key to the scores, within attention and behind
// a product of its own.
TEST_F(OpenBlocks, BiasedScoresCompile) {
  std::set<std::string> missing;
  const auto compile = [&](const char* policy, Phase phase, const char* gpu) {
    expect_plan_compiles(make_plan(policy, load_model("t5-large"), test::workload(phase)), gpu,
                         missing);
  };
  compile("coda", Phase::forward, "h200");
  compile("coda", Phase::decode, "a100-sxm-80gb");
  compile("unfused", Phase::forward, "h200");
  EXPECT_EQ(missing, std::set<std::string>{});
}

TEST_F(OpenBlocks, ModulationCompiles) {
  EXPECT_EQ(expect_block_compiles(fuseline::test::modulated_block(sizes(64), true), false),
            std::set<std::string>{});
}

// Two streams, whose rows lie apart in the attention that they share.
TEST_F(OpenBlocks, JointAttentionCompiles) {
  const ModelConfig model = load_model("sd3-medium");
  Workload work;
  work.batch = 2;
  work.seq = 256;
  std::set<std::string> missing;
  for (const char* gpu : {"h200", "a100-sxm-80gb"})
    for (const char* policy : {"eager", "per-operator", "torch-compile", "coda"})
      expect_plan_compiles(make_plan(policy, model, work), gpu, missing);
  // Norms of heads ahead of where the streams are stored.
  for (const char* gpu : {"h200", "a100-sxm-80gb"})
    expect_plan_compiles(make_plan("coda", load_model("sd3-medium-qknorm"), work), gpu, missing);
  EXPECT_EQ(missing, std::set<std::string>{});
}

// Mamba-1, Mamba-2 and the Mamba blocks of a hybrid: convolutions, scans, the states of decode.
TEST_F(OpenBlocks, StateSpaceBlocksCompile) {
  ModelConfig hybrid = load_model("jamba");
  std::erase_if(hybrid.blocks, [](const BlockUse& use) { return use.name != "mamba-mlp"; });
  ASSERT_EQ(hybrid.blocks.size(), 1U);
  std::set<std::string> missing;
  // The rows that a cache keeps of several new tokens lie apart.
  Workload tokens = test::workload(Phase::decode);
  tokens.seq = 5;
  for (const ModelConfig& model : {load_model("mamba2-2.7b"), load_model("mamba-2.8b"), hybrid}) {
    expect_plan_compiles(make_plan("coda", model, tokens), "h200", missing);
    for (const Phase phase : {Phase::forward, Phase::decode}) {
      for (const char* policy : {"unfused", "eager", "torch-compile", "coda"})
        expect_plan_compiles(make_plan(policy, model, test::workload(phase)), "h200", missing);
      expect_plan_compiles(make_plan("coda", model, test::workload(phase)), "a100-sxm-80gb",
                           missing);
    }
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

// The same under every policy of several launches, and for both architectures.
class LongOpenBlocks : public OpenBlocks {};

TEST_F(LongOpenBlocks, StateSpaceBlocksCompileUnderAllPolicies) {
  for (const char* model : {"mamba2-2.7b", "mamba-2.8b"})
    for (const Phase phase : {Phase::forward, Phase::decode})
      EXPECT_EQ(expect_block_compiles(build_block(load_model(model), test::workload(phase)), false),
                std::set<std::string>{});
}

// Every new map alone and behind a product, with its gradient.
TEST_F(OpenBlocks, ActivationsCompile) {
  for (const OpKind kind : {OpKind(operators::gelu_erf), OpKind(operators::relu),
                            OpKind(operators::softplus), OpKind(operators::softcap)}) {
    fuseline::test::GraphByHand b;
    const Attributes cap = kind == operators::softcap ? Attributes(Scalar{30.0}) : Attributes();
    const Operand x = b.tensor("x", Role::input, 256, 128);
    const Operand up = b.tensor("up", Role::activation, 256, 512);
    b.op("up", operators::gemm, {x, b.tensor("w_up", Role::weight, 512, 128)}, {up});
    b.op("act", kind, {up}, {b.tensor("y", Role::output, 256, 512)}, cap);
    // Two thread blocks share an Ampere multiprocessor, and its registers leave erf too few: it
    // spills 40 bytes there, so that kernel is not promised.
    std::vector<const char*> gpus{"h200"};
    if (kind != operators::gelu_erf) gpus.push_back("a100-sxm-80gb");
    EXPECT_EQ(expect_block_compiles(b.graph, true, gpus), std::set<std::string>{}) << name_of(kind);
  }
}

}  // namespace
}  // namespace fuseline::cuda
