// Weights in every number format: products with them are legal, predicted at or above their limits,
// computed with equal bytes and the results of fp64. Whole blocks: blocks_in_formats_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "model/operators/all_operators.h"
#include "sim/gpu/plan_target.h"
#include "sim/memory/memory_fit.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

StoredWeight weight_format(const std::string& name) { return parse_stored_weight(name, "", ""); }

// Every format; and groups that are shorter than the rows here and do not divide them.
std::vector<std::string> weight_formats() {
  std::vector<std::string> names = weight_format_names();
  for (const char* grouped : {"int4:16", "int4-zero:10", "int8:14", "int4:0"})
    names.emplace_back(grouped);
  return names;
}

// y = x w^T alone, of any size.
Graph product(const StoredWeight& weight, std::int64_t M, std::int64_t N, std::int64_t K) {
  test::GraphByHand g;
  std::vector<Operand> reads = {g.tensor("x", Role::input, M, K),
                                g.tensor("w_up", Role::weight, N, K)};
  g.graph.tensor(reads[1].tensor).dtype = weight.element();
  for (const ScaleTensor& t : weight.beside(N, K)) {
    reads.push_back(g.tensor(std::string("w_up") + t.suffix, Role::weight, t.rows, t.cols));
    g.graph.tensor(reads.back().tensor).dtype = t.type;
  }
  const Operand y = g.tensor("y", Role::output, M, N);
  g.op("up", operators::gemm, reads, {y}, GemmLayout{.weight = weight});
  return g.graph;
}

// Larger than a tile, parts of K, and blocks of 128 x 128 that end within tiles.
TEST(NumberFormatsOfProducts, AreProvedForRandomSizes) {
  std::mt19937 random(11);
  for (const std::string& name : weight_formats()) {
    for (int round = 0; round < 3; ++round) {
      const std::int64_t M = test::pick(random, 1, 150);
      const std::int64_t N = test::pick(random, 1, 500);
      const std::int64_t K = 2 * test::pick(random, 1, round == 2 ? 1500 : 200);
      const Graph block = product(weight_format(name), M, N, K);
      const test::Proof proof(block);
      for (const char* policy : {"eager", "coda"})
        proof.of(make_plan(policy, block),
                 fmt::format("{} {} [{}, {}] x [{}, {}]", name, policy, M, K, N, K));
    }
  }
}

TEST(NumberFormatsOfProducts, OfGroupsOfRowsAreProved) {
  for (const char* name : {"int4:16", "fp8-block", "nvfp4", "int4-zero"}) {
    const StoredWeight weight = weight_format(name);
    const RaggedRows rows{.groups = {3, 130, 17}, .weight = weight};
    constexpr std::int64_t N = 150, K = 70, all = 4;
    test::GraphByHand g;
    const Operand w = g.tensor("w_up", Role::weight, all * N, K, {all, N});
    g.graph.tensor(w.tensor).dtype = weight.element();
    const auto active = [&](const Operand& o, std::int64_t each) {
      return g.graph.rows(o.tensor, 0, 3 * each);
    };
    std::vector<Operand> reads = {g.tensor("x", Role::input, 150, K), active(w, N)};
    for (const ScaleTensor& t : weight.beside(N, K)) {
      const bool one = t.kind == ScaleKind::tensor_scale;
      const Operand scale =
          g.tensor(std::string("w_up") + t.suffix, Role::weight, one ? 1 : all * t.rows, t.cols);
      g.graph.tensor(scale.tensor).dtype = t.type;
      reads.push_back(one ? scale : active(scale, t.rows));
    }
    g.op("up", operators::grouped_gemm, reads, {g.tensor("y", Role::output, 150, N)}, rows);
    const test::Proof proof(g.graph);
    for (const char* policy : {"eager", "coda"})
      proof.of(make_plan(policy, g.graph), std::string(name) + " " + policy);
  }
}

// By hand: 512 x 1024 codes of 4 bits, and 8 scales of 2 bytes a row.
TEST(NumberFormatsOfProducts, ReadCodesAndScalesFromHbmOnce) {
  const Gpu gpu = load_gpu("h200");
  for (const char* policy : {"eager", "coda"}) {
    const Plan plan = make_plan(policy, product(weight_format("int4"), 16, 512, 1024));
    const PlanEstimate e = simulate(plan, gpu, Fidelity::hierarchy);
    const std::int64_t weights = 512 * 1024 / 2 + 512 * 8 * 2;
    const std::int64_t x = 16 * 1024 * 2;
    EXPECT_GE(e.hbm_read.value(), weights) << policy;
    EXPECT_LE(e.hbm_read.value(), weights + x) << policy;
    EXPECT_EQ(e.limits.compulsory.value(), weights + x + 16 * 512 * 2) << policy;
  }
}

double time_of_llama(const std::string& policy, Workload work, const std::string& weights,
                     const std::string& name = "h200") {
  const Gpu gpu = load_gpu(name);
  if (!weights.empty()) work.formats.weights = weight_format(weights);
  return simulate(make_plan(policy, build_block(test::llama2_7b(), work), plan_target(gpu)), gpu,
                  Fidelity::hierarchy)
      .time.value();
}

// A token at a time waits for the weights: a quarter of the bytes, and some of the time. That is
// said of a library's kernels.
TEST(NumberFormatsOfProducts, MakeDecodeFasterAndPrefillNot) {
  const auto time = [](const Workload& work, const std::string& weights) {
    return time_of_llama("torch-compile", work, weights);
  };
  const double decode = time(test::decode(1, 1, 512), "");
  EXPECT_LT(time(test::decode(1, 1, 512), "int8"), 0.8 * decode);
  EXPECT_LT(time(test::decode(1, 1, 512), "int4"), 0.6 * decode);
  const double prefill = time(test::forward(1, 2048), "");
  EXPECT_GT(time(test::forward(1, 2048), "int4"), 0.95 * prefill);
}

// What blocks of our own kernels took. In decode on an H200 (2026-11-28; constants were fitted to
// these blocks' products): 82.6 µs with int4, 102.0 with int8, 103.0 with fp8, and with five
// sequences 135.9 and 157.6 with int4 and int8, where the kernel for few rows leaves products to
// the other. No constant was fitted to these: on an H100, where bf16 took 176.3 µs (2026-11-26),
// 115.7 with mxfp4; 2,048 tokens on an H200 (measurements/h200-codes-fuseline), 5,360 with int4.
TEST(NumberFormatsOfProducts, TakeWhatOurOwnKernelsTook) {
  const auto decode = [](const std::string& weights, std::int64_t batch = 1,
                         const std::string& gpu = "h200") {
    return 1e6 * time_of_llama("coda", test::decode(batch, 1, 2048), weights, gpu);
  };
  EXPECT_NEAR(decode("int4"), 82.6, 0.05 * 82.6);
  EXPECT_NEAR(decode("int8"), 102.0, 0.05 * 102.0);
  EXPECT_NEAR(decode("fp8"), 103.0, 0.05 * 103.0);
  EXPECT_NEAR(decode("int4", 5), 135.9, 0.1 * 135.9);
  EXPECT_NEAR(decode("int8", 5), 157.6, 0.1 * 157.6);
  EXPECT_NEAR(decode("mxfp4", 1, "h100-sxm"), 115.7, 0.1 * 115.7);
  EXPECT_NEAR(1e6 * time_of_llama("coda", test::forward(1, 2048), "int4"), 5360, 0.2 * 5360);
}

TEST(NumberFormatsOfProducts, RefuseScalesThatAreNotTheirs) {
  const Plan sound = make_plan("eager", product(weight_format("int4:32"), 8, 48, 96));
  const auto problem = [](const Plan& plan) {
    const std::vector<std::string> all = check_program(plan.graph, plan.kernels[0].phases[0]);
    return all.empty() ? std::string() : all.front();
  };
  const auto mainloop = [](Plan& plan) -> GemmMainloop& {
    return std::get<GemmMainloop>(plan.kernels[0].phases[0].mainloop);
  };
  EXPECT_EQ(problem(sound), "");
  Plan wrong = sound;
  mainloop(wrong).weight.group = 16;
  EXPECT_EQ(problem(wrong), "up: scale w_up_scale is [48, 3], not [48, 6]");
  wrong = sound;
  mainloop(wrong).beside_b.clear();
  EXPECT_EQ(problem(wrong), "up: operand w_up has 0 tensors beside it, not 1");
  wrong = sound;
  mainloop(wrong).weight = weight_format("nvfp4");
  EXPECT_EQ(problem(wrong), "up: operand w_up is int4, not e2m1");
  wrong = sound;
  wrong.graph.tensor(mainloop(wrong).beside_b[0].tensor).dtype = Dtype::bf16;
  EXPECT_EQ(problem(wrong), "up: scale w_up_scale is not fp16");
}

// By hand: 6.7e9 parameters of 4.125 bits, embeddings and LM head in 16.
TEST(NumberFormatsOfModels, CountTheirBytes) {
  const ModelConfig model = test::llama2_7b();
  Workload work;
  const std::int64_t plain = weight_bytes(model, work).value();
  EXPECT_EQ(plain, 2 * parameter_count(model));
  work.formats.weights = weight_format("int4");
  const std::int64_t products = 32 * (4 * 4096 * 4096 + 3 * 4096 * std::int64_t{11008});
  EXPECT_EQ(weight_bytes(model, work).value(),
            plain - products * 2 + products / 2 + products / 128 * 2 +
                // 11,008 columns are 86 groups: no group is short.
                0);
}

TEST(NumberFormatsOfModels, RefuseTrainingAndHalfBytes) {
  ModelConfig model = test::tiny_llama();
  Workload work = test::train(1, 8);
  work.formats.weights = weight_format("int8");
  try {
    check_workload(work, model);
    FAIL() << "weights in few bits were trained";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "weights");
    EXPECT_EQ(error.problem().value, "int8");
  }
  work = test::forward(1, 8);
  work.formats.weights = weight_format("int4");
  model.F = 13;  // columns of w_down
  try {
    static_cast<void>(build_block(model, work));
    FAIL() << "a row ended within a byte";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "w_down");
    EXPECT_NE(error.problem().message.find("13 columns"), std::string::npos);
  }
  work.formats.weights = weight_format("int8");
  EXPECT_NO_THROW(static_cast<void>(build_block(model, work)));
}

}  // namespace
}  // namespace fuseline
