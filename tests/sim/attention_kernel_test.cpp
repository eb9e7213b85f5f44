#include "sim/attention_kernel.h"

#include <gtest/gtest.h>

#include <variant>

#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

OpAttributes causal(std::int64_t batch, std::int64_t tokens, std::int64_t heads,
                    std::int64_t width) {
  OpAttributes a;
  a.batch = batch;
  a.heads = a.kv_heads = heads;
  a.head_width = width;
  a.q_tokens = a.kv_tokens = tokens;
  a.causal = true;
  return a;
}

double prefill_us(const OpAttributes& shape, const Gpu& gpu) {
  const PrefillTime t = prefill_time(shape, gpu);
  return to_us(t.tensor + t.exp);
}

TEST(AttentionKernel, ReproducesMeasuredPrefillTimes) {
  // cuDNN on an H200, graph replays, in us; 4 us of launch, first loads and last stores are
  // outside.
  struct Case {
    std::int64_t batch, tokens, heads, width;
    double measured;
  };
  const Gpu gpu = test_gpu();
  for (const Case& c :
       {Case{1, 2048, 32, 128, 84.7}, Case{4, 2048, 32, 128, 262.6}, Case{1, 2048, 64, 128, 144.7},
        Case{1, 512, 32, 128, 13.2}, Case{1, 8192, 32, 128, 887.2}, Case{4, 2048, 25, 64, 146.8},
        Case{1, 2048, 25, 64, 49.0}}) {
    const double predicted = prefill_us(causal(c.batch, c.tokens, c.heads, c.width), gpu) + 4.0;
    EXPECT_NEAR(predicted, c.measured, 0.08 * c.measured)
        << c.batch << 'x' << c.tokens << ' ' << c.heads << " heads of " << c.width;
  }
}

TEST(AttentionKernel, OneQueryTilePerSmCostsTheLongestTile) {
  // Given 132 SMs and fewer tiles, when a second head comes, then the time stays.
  const Gpu gpu = test_gpu();
  EXPECT_EQ(prefill_us(causal(1, 512, 1, 128), gpu), prefill_us(causal(1, 512, 33, 128), gpu));
  EXPECT_LT(prefill_us(causal(1, 512, 33, 128), gpu), prefill_us(causal(1, 512, 34, 128), gpu));
}

TEST(AttentionKernel, AWindowShortensLongSequences) {
  const Gpu gpu = test_gpu();
  OpAttributes windowed = causal(1, 8192, 32, 128);
  windowed.window = 1024;
  const double full = prefill_us(causal(1, 8192, 32, 128), gpu);
  EXPECT_LT(prefill_us(windowed, gpu), 0.4 * full);
}

TEST(AttentionKernel, ManyTilesUseTheBalancedEstimateWithoutAJump) {
  // The exact deal ends at 2^14 tiles.
  const Gpu gpu = test_gpu();
  const double below = prefill_us(causal(16, 4096, 32, 128), gpu);
  const double above = prefill_us(causal(16, 4096, 33, 128), gpu);
  EXPECT_NEAR(above / below, 33.0 / 32.0, 0.01);
}

TEST(AttentionKernel, DecodeSplitsKeysWhenHeadsDoNotFillTheGpu) {
  const Gpu gpu = test_gpu();
  OpAttributes a = causal(1, 1, 32, 128);
  a.causal = false;
  a.kv_tokens = 2048;
  EXPECT_EQ(key_splits(a, gpu), 8);  // measured grid (8, 32, 1)
  a.kv_heads = 8;
  EXPECT_EQ(key_splits(a, gpu), 16);  // (16, 8, 1)
  a.batch = 16;
  EXPECT_EQ(key_splits(a, gpu), 1);
  a.batch = 1;
  a.kv_tokens = 512;
  EXPECT_EQ(key_splits(a, gpu), 1);  // too few keys
}

AttentionEstimate run_attention(const Workload& w, const ModelConfig& config, const Gpu& gpu) {
  const Plan plan = make_plan("per-operator", config, w);
  const AddressMap addresses(plan);
  L2Cache cache(Bytes(34 << 20));
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.kind == KernelKind::attention) {
      return simulate_attention(kernel.phases.front(), addresses, gpu, cache);
    }
  }
  throw std::runtime_error("no attention kernel");
}

TEST(AttentionKernel, DecodeReadsTheCacheOnceAndMergesItsSplits) {
  const Gpu gpu = test_gpu();
  const AttentionEstimate e = run_attention(decode(1, 1, 2048), llama_7b(), gpu);
  const std::int64_t kv = 2 * 2048 * 4096 * 2;
  EXPECT_GE(e.hbm.read, Bytes(kv));
  EXPECT_LE(e.hbm.read, Bytes(kv + 2 * 4096 * 4));
  EXPECT_EQ(e.splits, 8);
  ASSERT_TRUE(e.combine_work.has_value());
  // Measured: 14.1 us for both launches in a graph.
  EXPECT_NEAR(to_us(e.work + *e.combine_work) + 2 * 1.16, 14.1, 2.0);
}

TEST(AttentionKernel, ALargeBatchDecodesAtTheBandwidthOfHbm) {
  const Gpu gpu = test_gpu();
  const AttentionEstimate e = run_attention(decode(64, 1, 2048), llama_7b(), gpu);
  EXPECT_EQ(e.bound, Bound::hbm);
  EXPECT_FALSE(e.combine_work.has_value());
  EXPECT_NEAR(to_us(e.work) + 1.16, 477.9, 0.05 * 477.9);  // measured on an H200
}

TEST(AttentionKernel, PrefillReadsQKAndVOnceAndLoadsKeysPerQueryTile) {
  const Gpu gpu = test_gpu();
  const AttentionEstimate e = run_attention(forward(1, 2048), llama_7b(), gpu);
  EXPECT_EQ(e.hbm.read, Bytes(3 * 2048 * 4096 * 2));
  // Counters say 330 MB through L2.
  EXPECT_NEAR(e.l2.as_double(), 330e6, 0.05 * 330e6);
}

// Time of attention in one block, in us, its merge of splits included.
double context_us(std::int64_t batch, std::int64_t tokens, std::int64_t context,
                  const ModelConfig& config) {
  const AttentionEstimate e = run_attention(decode(batch, tokens, context), config, test_gpu());
  return to_us(e.work + e.combine_work.value_or(Seconds()));
}

TEST(AttentionKernel, MoreNewTokensTakeNoLessTimeAndNoneIsACliff) {
  // One kernel serves 16 and 17 tokens: at 4 × 8,192 keys the first took 16 us longer before.
  ModelConfig grouped = llama_7b();
  grouped.Hkv = 8;
  ModelConfig few = llama_7b();
  few.H = few.Hkv = 4;
  few.D = few.H * few.d;
  for (const ModelConfig& config : {llama_7b(), grouped, few}) {
    for (const std::int64_t batch : {1, 4, 40}) {
      for (const std::int64_t context : {std::int64_t{1500}, 8192 / batch * 4}) {
        double before = 0;
        for (const std::int64_t tokens : {1,  2,  8,  15,  16,  17,  18,  31,  32,  33,  34, 48,
                                          64, 65, 66, 100, 128, 129, 130, 200, 256, 257, 258}) {
          const double now = context_us(batch, tokens, context, config);
          // Where a second tile of rows begins, fewer splits may be the better ones.
          const std::int64_t rows = tokens * config.H / config.Hkv;
          EXPECT_GE(now, (rows <= 128 ? 0.97 : 0.85) * before)
              << batch << 'x' << tokens << " of " << context;
          // A tile of 64 rows more is the largest step: it doubles what one tile computes.
          if (before > 0 && tokens % 2 == 1) {
            EXPECT_LE(now, (tokens == 17 ? 1.2 : 2.1) * before)
                << batch << 'x' << tokens << " of " << context;
          }
          before = now;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
