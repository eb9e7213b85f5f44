// Caches in number formats: what attention does with them, what moves, what is refused. All shipped
// blocks: blocks_in_formats_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "model/formats/least_scale.h"
#include "model/operators/all_operators.h"
#include "sim/executor/verification.h"
#include "sim/gpu/plan_target.h"
#include "sim/memory/memory_fit.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

StoredCache format(const std::string& name) { return parse_stored_cache(name, "", ""); }

Workload decode_in_cache(const std::string& name, std::int64_t batch, std::int64_t seq,
                         std::int64_t context) {
  Workload work = test::decode(batch, seq, context);
  if (!name.empty()) work.formats.cache = format(name);
  return work;
}

// Queries of more than one tile, keys of several, and heads that share keys.
TEST(CacheFormatsOfAttention, AreProvedBeyondOneTile) {
  ModelConfig c = test::sized("llama", false);
  c.H = 4;
  c.Hkv = 2;
  for (const std::string& name : cache_format_names()) {
    const Graph block = build_block(c, decode_in_cache(name, 1, 140, 300));
    const test::Proof proof(block);
    for (const char* policy : {"unfused", "eager", "tensorrt-llm", "coda"})
      proof.of(make_plan(policy, block), name + ", " + policy);
  }
}

TEST(CacheFormatsOfAttention, AreProvedInOtherTypes) {
  for (const Dtype dtype : {Dtype::fp16, Dtype::fp32}) {
    for (const std::string& name : cache_format_names()) {
      Workload work = decode_in_cache(name, 2, 3, 40);
      work.dtype = dtype;
      const Graph block = build_block(test::sized("llama", false), work);
      const test::Proof proof(block);
      for (const char* policy : {"unfused", "torch-compile", "whole-block"})
        proof.of(make_plan(policy, block), name + ", " + policy);
    }
  }
}

const KernelEstimate& attention_of(const PlanEstimate& e) {
  const auto found = std::ranges::find_if(
      e.kernels, [](const KernelEstimate& k) { return k.kind == KernelKind::attention; });
  EXPECT_NE(found, e.kernels.end());
  return *found;
}

// By hand, of a block of LLaMA-2-7B with 4,096 cached tokens of 32 heads of 128: a byte instead of
// two for each number, and for int8 4 bytes for each head of a token.
TEST(CacheFormatsOfAttention, MoveCodesAndScalesOnce) {
  const Gpu gpu = load_gpu("h200");
  const ModelConfig model = test::llama2_7b();
  const auto attention = [&](const std::string& name) {
    const Graph block = build_block(model, decode_in_cache(name, 1, 1, 4096));
    return attention_of(
        simulate(make_plan("coda", block, plan_target(gpu)), gpu, Fidelity::hierarchy));
  };
  const std::int64_t numbers = std::int64_t{2} * 4096 * 4096;
  const std::int64_t scales = std::int64_t{2} * 4096 * 32 * 4;
  const std::int64_t q = 4096 * 2;
  const auto expect = [&](const std::string& name, std::int64_t bytes) {
    // The rows that the kernel before appended are in L2.
    const std::int64_t read = attention(name).hbm_read.value();
    EXPECT_LE(read, bytes + q) << name;
    EXPECT_GE(read, bytes - bytes / 1000) << name;
  };
  expect("", 2 * numbers);
  expect("fp8", numbers);
  expect("int8", numbers + scales);
}

TEST(CacheFormatsOfAttention, LowerTheLeastThatMustMove) {
  const Gpu gpu = load_gpu("h200");
  const ModelConfig model = test::llama2_7b();
  const auto least = [&](const std::string& name) {
    return limits_of(build_block(model, decode_in_cache(name, 1, 1, 4096)), gpu).compulsory.value();
  };
  const std::int64_t numbers = std::int64_t{2} * 4096 * 4096;
  EXPECT_EQ(least("") - least("fp8"), numbers);
  EXPECT_EQ(least("int8") - least("fp8"), std::int64_t{2} * 4096 * 32 * 4);
}

// A long context waits for the cache: half of the bytes, and some of the time. Prefill has none.
TEST(CacheFormatsOfAttention, MakeDecodeFasterAndLeavePrefillAlone) {
  const Gpu gpu = load_gpu("h200");
  const ModelConfig model = test::llama2_7b();
  const auto time = [&](const Workload& work) {
    return simulate(make_plan("coda", build_block(model, work), plan_target(gpu)), gpu,
                    Fidelity::hierarchy)
        .time.value();
  };
  const double plain = time(decode_in_cache("", 16, 1, 4096));
  EXPECT_LT(time(decode_in_cache("fp8", 16, 1, 4096)), 0.7 * plain);
  EXPECT_LT(time(decode_in_cache("int8", 16, 1, 4096)), 0.7 * plain);
  Workload prefill = test::forward(1, 512);
  const double without = time(prefill);
  prefill.formats.cache = format("int8");
  EXPECT_EQ(time(prefill), without);
}

// Only what goes through memory has numbers made of codes first.
TEST(CacheFormatsOfAttention, AreDequantisedByAKernelOfTheirOwnInUnfused) {
  const Graph block = build_block(test::sized("llama", false), decode_in_cache("int8", 2, 1, 17));
  const auto kernels = [&](const std::string& policy) {
    const Plan plan = make_plan(policy, block);
    return std::ranges::count_if(
        plan.graph.ops(), [](const Op& op) { return op.kind == operators::dequantise_cache; });
  };
  EXPECT_EQ(kernels("unfused"), 2);
  for (const PolicyInfo& p : policies()) {
    if (p.name != "unfused") {
      EXPECT_EQ(kernels(p.name), 0) << p.name;
    }
  }
}

// Heads of very different sizes keep their own precision: the error of a number is at most half a
// step of its own head.
TEST(CacheFormatsOfAttention, GiveEachHeadOfATokenAScale) {
  test::GraphByHand g;
  const Operand x = g.tensor("x", Role::input, 3, 8);
  const Operand codes = g.tensor("cache_k", Role::cache, 3, 8);
  const Operand scale = g.tensor("cache_k_scale", Role::cache, 3, 2);
  g.graph.tensor(codes.tensor).dtype = Dtype::int8;
  g.graph.tensor(scale.tensor).dtype = Dtype::fp32;
  g.op("append", operators::cache_append_scaled, {x}, {codes, scale},
       ScaledHeads{2, format("int8")});
  const std::vector<double> values = {1000, -3,  0.4, 7,    1e-3, 2e-3, -1e-3, 5e-4,  //
                                      0,    0,   0,   0,    5,    5,    5,     -5,    //
                                      -127, 126, 0.5, 0.49, 1e-9, 0,    0,     -1e-9};
  const NamedTensors given{{"x", values},
                           {"cache_k", std::vector<double>(24)},
                           {"cache_k_scale", std::vector<double>(6)}};
  const TensorValues made = run_reference(g.graph, given);
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t c = 0; c < 8; ++c) {
      const auto at = static_cast<std::size_t>(r * 8 + c);
      const double s = made.at(scale.tensor)[static_cast<std::size_t>(r * 2 + c / 4)];
      const double code = made.at(codes.tensor)[at];
      EXPECT_GT(s, 0);
      EXPECT_EQ(code, std::nearbyint(code));
      EXPECT_LE(std::fabs(code), 127);
      EXPECT_LE(std::fabs(code * s - values[at]), s / 2 * (1 + 1e-12)) << r << ' ' << c;
    }
  }
  EXPECT_EQ(made.at(codes.tensor)[0], 127);
  EXPECT_EQ(made.at(scale.tensor)[2], kLeastScale);  // a head of zeros
}

// Rows in fp32, so that only a number next to the middle between two codes may become another one;
// more columns than a tile has, and heads of odd widths. What comes back is off by half a step.
TEST(CacheFormatsOfAttention, AreRoundedAndComeBackAsInFp64) {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    const std::int64_t rows = test::pick(random, 1, 150);
    const std::int64_t heads = test::pick(random, 1, 5);
    const std::int64_t d = test::pick(random, 2, 130);
    test::GraphByHand g;
    const auto tensor = [&](const char* name, Role role, std::int64_t cols, Dtype type) {
      const Operand o = g.tensor(name, role, rows, cols);
      g.graph.tensor(o.tensor).dtype = type;
      return o;
    };
    const Operand x = tensor("x", Role::input, heads * d, Dtype::fp32);
    const Operand codes = tensor("cache_k", Role::cache, heads * d, Dtype::int8);
    const Operand scale = tensor("cache_k_scale", Role::cache, heads, Dtype::fp32);
    const Operand y = tensor("y", Role::output, heads * d, Dtype::fp32);
    g.op("append", operators::cache_append_scaled, {x}, {codes, scale},
         ScaledHeads{heads, format("int8")});
    g.op("dequantise", operators::dequantise_cache, {codes, scale}, {y}, HeadCount{heads});
    const Plan plan = make_plan("per-operator", g.graph);
    const executor::Inputs given = executor::random_storage(g.graph, 5, {}, {.outliers = 30});
    NamedTensors values;
    for (const auto& [name, storage] : given) values[name] = executor::to_doubles(*storage);
    const TensorValues want = run_reference(g.graph, values);
    const executor::Execution run = executor::execute(plan, given, executor::executor_gpu(), {});
    executor::expect_predicted_bytes(plan, run, "append");
    const auto got = [&](const char* name) {
      return executor::to_doubles(run.memory->at(*plan.graph.find_tensor(name)));
    };
    const std::vector<double> scales = got("cache_k_scale");
    for (std::size_t i = 0; i < scales.size(); ++i)
      EXPECT_NEAR(scales[i], want.at(scale.tensor)[i], scales[i] * 0x1p-21);
    const std::vector<double> made = got("cache_k");
    const std::vector<double> back = got("y");
    const auto& in = values.at("x");
    std::int64_t others = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const double off = std::fabs(made[i] - want.at(codes.tensor)[i]);
      EXPECT_LE(off, 1);
      others += off > 0 ? 1 : 0;
      const double step = scales[i / static_cast<std::size_t>(d)];
      EXPECT_LE(std::fabs(back[i] - in[i]), step * (0.5 + 1e-4)) << i;
    }
    EXPECT_LE(others, 2);
  }
}

TEST(CacheFormatsOfAttention, RefuseCodesThatAreNotTheirs) {
  const Graph block = build_block(test::sized("llama", false), decode_in_cache("int8", 2, 1, 17));
  const Plan sound = make_plan("eager", block);
  const auto kernel = [](Plan& plan) -> Program& {
    const auto found = std::ranges::find_if(plan.kernels, [](const Kernel& k) {
      return std::holds_alternative<AttentionMainloop>(k.phases[0].mainloop);
    });
    return found->phases[0];
  };
  const auto mainloop = [&](Plan& plan) -> AttentionMainloop& {
    return std::get<AttentionMainloop>(kernel(plan).mainloop);
  };
  const auto problem = [&](Plan& plan) {
    const std::vector<std::string> all = check_program(plan.graph, kernel(plan));
    return all.empty() ? std::string() : all.front();
  };
  Plan wrong = sound;
  EXPECT_EQ(problem(wrong), "");
  mainloop(wrong).k_scale.reset();
  EXPECT_EQ(problem(wrong), "attention: operand cache_k has no scales beside it");
  wrong = sound;
  mainloop(wrong).v_scale->cols = 1;
  EXPECT_EQ(problem(wrong), "attention: scale cache_v_scale is [34, 1], not [34, 2]");
  wrong = sound;
  mainloop(wrong).shape.cache = format("fp8");
  EXPECT_EQ(problem(wrong), "attention: operand cache_k is int8, not e4m3");
  wrong = sound;
  mainloop(wrong).shape.cache = {};
  EXPECT_EQ(problem(wrong), "attention: operand cache_k is int8, not a number without a format");
}

// By hand: 32 layers, 2,048 tokens of 2 x 4,096 numbers.
TEST(CacheFormatsOfModels, CountTheirBytes) {
  const ModelConfig model = test::llama2_7b();
  for (Workload work : {test::forward(3, 2048), test::decode(3, 1, 2048)}) {
    const std::int64_t numbers = std::int64_t{32} * 3 * 2048 * 2 * 4096;
    EXPECT_EQ(kv_cache_bytes(model, work).value(), 2 * numbers);
    work.formats.cache = format("fp8");
    EXPECT_EQ(kv_cache_bytes(model, work).value(), numbers);
    work.formats.cache = format("int8");
    EXPECT_EQ(kv_cache_bytes(model, work).value(), numbers + numbers / 128 * 4);
    EXPECT_EQ(weight_bytes(model, work), weight_bytes(model, test::forward(3, 2048)));
  }
}

InputProblem cache_problem(const std::string& lines, const Workload& work) {
  const std::string text = "fuseline.block/1\nblock b(D = 16, H = 2)\n  input x[M, D]\n" + lines;
  ModelConfig model = test::tiny_llama();
  model.blocks = {{.block = "b", .text = BlockText::parse(text, "b.block")}};
  try {
    static_cast<void>(build_block(model, work));
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "taken: " << lines;
  return {};
}

TEST(CacheFormatsOfBlocks, NeedHeadsAndAttentionAlone) {
  const std::string end = "  y = x + a\n  output y -> x\n";
  const std::string attend = "  a = attention(x, k, v, heads = H, mask = causal)\n" + end;
  const std::string silent = "  k, v = cache(k = x, v = x)\n" + attend;
  EXPECT_EQ(cache_problem(silent, decode_in_cache("int8", 1, 1, 9)).field, "heads");
  EXPECT_EQ(cache_problem("  k, v = cache(k = x, v = x, heads = 3)\n" + attend,
                          decode_in_cache("int8", 1, 1, 9))
                .value,
            "3");
  const InputProblem other = cache_problem("  k, v = cache(k = x, v = x, heads = 2)\n" + attend,
                                           decode_in_cache("int8", 1, 1, 9));
  EXPECT_EQ(other.field, "cache_k");
  const InputProblem read =
      cache_problem("  k, v = cache(k = x, v = x, heads = H)\n  a = silu(k)\n" + end,
                    decode_in_cache("fp8", 1, 9, 9));
  EXPECT_EQ(read.field, "cache_k");
  EXPECT_EQ(read.value, "fp8");
}

TEST(CacheFormatsOfModels, RefuseTraining) {
  Workload work = test::train(1, 8);
  work.formats.cache = format("fp8");
  try {
    check_workload(work, test::tiny_llama());
    FAIL() << "a cache was trained";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "kv");
    EXPECT_EQ(error.problem().value, "fp8");
  }
}

}  // namespace
}  // namespace fuseline
