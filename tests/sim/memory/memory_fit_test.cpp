#include "sim/memory/memory_fit.h"

#include <gtest/gtest.h>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/custom_fusion.h"
#include "sim/block/whole_model.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

Plan plan_of(const std::string& policy, const ModelConfig& config, const Workload& workload) {
  return make_plan(policy, config, workload);
}

Workload training_work(std::int64_t batch, std::int64_t seq) {
  Workload w = forward(batch, seq);
  w.phase = Phase::train;
  return w;
}

// The published counts of the checkpoints; GPT-2's LM head is its embedding.
TEST(ParameterCount, IsThatOfTheCheckpoints) {
  EXPECT_EQ(parameter_count(load_model("llama2-7b")), 6'738'415'616);
  EXPECT_EQ(parameter_count(load_model("llama2-70b")), 68'976'648'192);
  EXPECT_EQ(parameter_count(load_model("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameter_count(load_model("gpt2-xl")), 1'557'611'200);
  // Numbers in fp32 count once: a layer has two products with the width, the convolution and its
  // bias, what makes steps, keys and queries, the rates, the skip and the norms.
  const std::int64_t D = 2560, inner = 2 * D, N = 16, rank = 160;
  const std::int64_t layer = 3 * inner * D + 5 * inner + (rank + 2 * N) * inner +
                             (rank + 1) * inner + inner * N + inner + D;
  EXPECT_EQ(parameter_count(load_model("mamba-2.8b")), 64 * layer + 50280 * D + D);
}

// Encoder and decoder have an embedding together and a final norm each; the biases of distances,
// 2 x 32 x 16 numbers, are a table here.
TEST(ParameterCount, OfAnEncoderBesideADecoderIsThatOfTheCheckpoint) {
  EXPECT_EQ(parameter_count(load_model("t5-large")), 737'668'096 - 2 * 32 * 16);
  EXPECT_EQ(weight_bytes(load_model("t5-large"), forward(1, 1)),
            Bytes(2 * (737'668'096LL - 2 * 32 * 16)));
}

// By hand: in decode 24 layers keep keys and values of S tokens and of the source's.
TEST(KvCache, OfADecoderHoldsTheSourceToo) {
  const ModelConfig c = load_model("t5-large");
  const std::int64_t both = 2LL * 24 * 3 * 16 * 64 * 2;
  EXPECT_EQ(kv_cache_bytes(c, decode(3, 1, 100)), Bytes(both * (100 + 512)));
}

TEST(Activations, OfAnEncoderFollowItsOwnTokens) {
  ModelConfig c = load_model("t5-large");
  const Workload w = forward(1, 8);
  const MemoryNeed few = memory_need(plan_of("eager", c, w), c, w);
  c.values["source_tokens"] = std::int64_t{4096};
  const MemoryNeed many = memory_need(plan_of("eager", c, w), c, w);
  // Two matrices [4096, F] or more are alive in the encoder, whatever the decoder's tokens.
  EXPECT_GT(many.activations, Bytes(2LL * 4096 * c.F));
  EXPECT_LT(few.activations, many.activations);
  EXPECT_EQ(few.weights, many.weights);
}

TEST(KvCache, HoldsKeysAndValuesOfEveryLayerAndToken) {
  const ModelConfig c = load_model("llama3-8b");
  EXPECT_EQ(kv_cache_bytes(c, decode(3, 1, 4096)), Bytes(3LL * 2 * 32 * 4096 * 8 * 128 * 2));
  EXPECT_EQ(kv_cache_bytes(c, forward(3, 4096)), kv_cache_bytes(c, decode(3, 1, 4096)));
  EXPECT_EQ(kv_cache_bytes(c, training_work(3, 4096)), Bytes(0));
}

TEST(KvCache, OfASlidingWindowStopsGrowing) {
  ModelConfig c = small_llama();
  c.sliding_window = 1024;
  EXPECT_EQ(kv_cache_bytes(c, decode(1, 1, 4096)), kv_cache_bytes(c, decode(1, 1, 1024)));
  EXPECT_LT(kv_cache_bytes(c, decode(1, 1, 1023)), kv_cache_bytes(c, decode(1, 1, 1024)));
}

// x, xn2 and gu stand beside each other at most: [M, D], [M, D], [M, 2F]; under `unfused` scores
// and probabilities [B·H·T, S] are far larger.
TEST(Activations, AreThoseAliveAtOnce) {
  const ModelConfig c = small_llama();
  const Workload w = forward(1, 512);
  const MemoryNeed fused = memory_need(plan_of("per-operator", c, w), c, w);
  const std::int64_t M = 512;
  EXPECT_GE(fused.activations, Bytes(2 * M * (c.D + 2 * c.F + c.F)));
  EXPECT_LE(fused.activations, Bytes(2 * M * (3 * c.D + 2 * c.F + c.F)));
  const MemoryNeed unfused = memory_need(plan_of("unfused", c, w), c, w);
  EXPECT_GE(unfused.activations, Bytes(2 * 2 * c.H * M * M));
  EXPECT_EQ(unfused.weights, fused.weights);
}

TEST(Activations, KeptOnChipTakeNoMemory) {
  const ModelConfig c = small_llama();
  const Workload w = forward(1, 512);
  EXPECT_LT(memory_need(plan_of("coda", c, w), c, w).activations,
            memory_need(plan_of("eager", c, w), c, w).activations);
}

// What a person chose for the block says nothing about the final norm and the LM head.
TEST(Activations, OfACustomBlockAreThoseOfItsPlan) {
  ModelConfig c = small_llama();
  const Workload w = forward(1, 512);
  const Plan custom = make_custom_plan(build_block(c, w), {}, {});
  EXPECT_EQ(memory_need(custom, c, w).total(),
            memory_need(plan_of("per-operator", c, w), c, w).total());
  c.V = 100'000;  // now the LM head's output is the most
  EXPECT_EQ(memory_need(custom, c, w).activations,
            memory_need(plan_of("per-operator", c, w), c, w).activations);
}

TEST(WholeModel, OfACustomBlockHasItsEnds) {
  const ModelConfig c = small_llama();
  const Workload w = forward(1, 512);
  const Gpu gpu = test_gpu();
  const PlanEstimate custom =
      simulate(make_custom_plan(build_block(c, w), {}, {}), gpu, Fidelity::hierarchy);
  const LayersEstimate whole = whole_model(custom, c, w, gpu);
  ASSERT_TRUE(whole.entry && whole.exit);
  EXPECT_EQ(whole.exit->policy, "custom");
  EXPECT_EQ(whole.time, custom.time * 4.0 + whole.entry->time + whole.exit->time);
  const PlanEstimate by_hand = simulate(plan_of("per-operator", c, w), gpu, Fidelity::hierarchy);
  EXPECT_EQ(whole.exit->time, whole_model(by_hand, c, w, gpu).exit->time);
}

// An encoder's layers run once, before the first token is generated.
TEST(WholeModel, LeavesOutInDecodeWhatDoesNotDecode) {
  const ModelConfig one = small_llama();
  ModelConfig two = one;
  two.blocks = {{.block = "llama", .layers = 1, .name = "a"},
                {.block = "llama", .layers = 3, .name = "b", .decodes = false}};
  const Gpu gpu = test_gpu();
  for (const Workload& w : {forward(1, 512), decode(2, 1, 300)}) {
    const PlanEstimate block = simulate(plan_of("eager", one, w), gpu, Fidelity::hierarchy);
    const LayersEstimate whole = whole_model(block, two, w, gpu);
    const std::int64_t run = w.phase == Phase::decode ? 1 : 4;
    EXPECT_EQ(whole.layers, run);
    EXPECT_EQ(whole.launches, run * block.launches + whole.entry->launches + whole.exit->launches);
  }
}

// Two kinds that are the same block are that block as often as both together.
TEST(WholeModel, AddsItsKindsOfLayers) {
  const ModelConfig one = small_llama();
  ModelConfig two = one;
  two.blocks = {{.block = "llama", .layers = 1, .name = "a"},
                {.block = "llama", .layers = 3, .name = "b"}};
  const Gpu gpu = test_gpu();
  for (const Workload& w : {forward(1, 512), decode(2, 1, 300)}) {
    for (const char* policy : {"eager", "coda"}) {
      const PlanEstimate block = simulate(plan_of(policy, one, w), gpu, Fidelity::hierarchy);
      const LayersEstimate of_one = whole_model(block, one, w, gpu);
      const LayersEstimate of_two = whole_model(block, two, w, gpu);
      EXPECT_EQ(of_two.hbm_read, of_one.hbm_read) << policy;
      EXPECT_EQ(of_two.launches, of_one.launches) << policy;
      EXPECT_NEAR(of_two.time / of_one.time, 1.0, 1e-12) << policy;
    }
  }
  two.blocks[1].values["F"] = 2 * one.F;
  const Workload w = forward(1, 512);
  const PlanEstimate block = simulate(plan_of("eager", one, w), gpu, Fidelity::hierarchy);
  EXPECT_GT(whole_model(block, two, w, gpu).time, whole_model(block, one, w, gpu).time);
  const PlanEstimate custom =
      simulate(make_custom_plan(build_block(two, w), {}, {}), gpu, Fidelity::hierarchy);
  EXPECT_THROW(whole_model(custom, two, w, gpu), InputError);
}

// What sees all tokens at once keeps no keys and values.
TEST(KvCache, IsThatOfTheBlocksThatKeepOne) {
  ModelConfig c = small_llama();
  EXPECT_GT(kv_cache_bytes(c, forward(1, 512)), Bytes(0));
  c.blocks = {{.block = "encoder"}};
  EXPECT_EQ(kv_cache_bytes(c, forward(1, 512)), Bytes(0));
}

TEST(Training, NeedsGradientsMomentsAndWhatTheForwardPassSaves) {
  ModelConfig c = small_llama();
  const Workload w = training_work(1, 256);
  const MemoryNeed shallow = memory_need(plan_of("eager", c, w), c, w);
  EXPECT_EQ(shallow.training, Bytes(parameter_count(c) * (2 + 8 + 4)));
  c.layers *= 2;
  const MemoryNeed deep = memory_need(plan_of("eager", c, w), c, w);
  // Each layer saves at least x, xn1, qkv, attn, h, xn2, gu and act.
  const std::int64_t saved = 2 * 256 * (5 * c.D + c.qkv_width() + 3 * c.F);
  EXPECT_GE(deep.activations - shallow.activations, Bytes(c.layers / 2 * saved));
}

TEST(Training, InFp32KeepsNoSecondCopyOfTheWeights) {
  const ModelConfig c = small_llama();
  Workload w = training_work(1, 64);
  w.dtype = Dtype::fp32;
  EXPECT_EQ(memory_need(plan_of("eager", c, w), c, w).training,
            Bytes(parameter_count(c) * (4 + 8)));
}

TEST(GpusNeeded, RoundsUp) {
  Gpu gpu = test_gpu();
  gpu.hbm_capacity = Bytes(100);
  EXPECT_EQ(gpus_needed(Bytes(100), gpu), 1);
  EXPECT_EQ(gpus_needed(Bytes(101), gpu), 2);
}

// The parts one by one: 24 layers each, embeddings of both texts, the encoder's norm, the LM head.
TEST(WholeModel, OfAnEncoderBesideADecoderRunsEachOverItsOwnTokens) {
  const ModelConfig c = load_model("t5-large");
  const Gpu gpu = test_gpu();
  const Workload decoder = forward(2, 24);
  const Workload encoder = forward(2, 512);
  const auto flops = [&](const Graph& graph) {
    return simulate(make_end_plan("eager", graph), gpu, Fidelity::roofline).flops;
  };
  const Flops expected = flops(build_block(c, c.blocks[0], decoder)) * 24 +
                         flops(build_block(c, c.blocks[1], encoder)) * 24 +
                         flops(build_entry(c, decoder)) + flops(build_entry(c, encoder)) +
                         flops(build_end(c, "final_rms_norm", encoder)) +
                         flops(build_exit(c, decoder));
  const PlanEstimate block = simulate(plan_of("eager", c, decoder), gpu, Fidelity::roofline);
  EXPECT_EQ(whole_model(block, c, decoder, gpu).flops, expected);
  // A token that is generated runs no layer of the encoder.
  const Workload step = decode(2, 1, 24);
  const PlanEstimate one = simulate(plan_of("eager", c, step), gpu, Fidelity::roofline);
  EXPECT_EQ(whole_model(one, c, step, gpu).layers, 24);
}

}  // namespace
}  // namespace fuseline
