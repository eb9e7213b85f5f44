// The simulator and the device share out attention's work alike: the same numbers from both texts.
#include <random>

#include <gtest/gtest.h>

#include "cuda/kernels/attention/decode_work.cuh"
#include "model/attention_kernels.h"

namespace fuseline {
namespace {

struct Pair {
  AttentionShape of_model;
  gpu::AttentionShape of_device;
};

Pair random_shape(std::mt19937& random) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const int kv_heads = number(1, 40), shared = number(1, 9), batch = number(1, 130);
  const int q = number(1, 5000), keys = number(1, 30000), d = 16 * number(1, 16);
  const bool causal = number(0, 1) == 1;
  AttentionShape m{.heads = kv_heads * shared,
                   .kv_heads = kv_heads,
                   .head_width = d,
                   .batch = batch,
                   .q_tokens = q,
                   .kv_tokens = keys};
  m.causal = causal;
  gpu::AttentionShape s{};
  s.batch = batch;
  s.heads = kv_heads * shared;
  s.kv_heads = kv_heads;
  s.q_tokens = q;
  s.kv_tokens = keys;
  s.kv_rows = keys;
  s.causal = causal ? 1 : 0;
  return {m, s};
}

TEST(AttentionWork, BlocksOfKeysAreAlike) {
  for (int keys = 64; keys <= 256; keys += 16)
    for (int values = 64; values <= keys; values += 16)
      EXPECT_EQ(gpu::hopper_block_keys(keys, values), forward_block_keys(keys, values));
}

TEST(AttentionWork, KeysAreSplitAlike) {
  std::mt19937 random(1);
  int several = 0;
  for (int i = 0; i < 2000; ++i) {
    Pair p = random_shape(random);
    p.of_device.q_tokens = 1 + i % 16;
    for (const int slots : {132, 264, 528}) {
      const int device = gpu::decode_splits(p.of_device, slots);
      EXPECT_EQ(key_splits(gpu::decode_tiles(p.of_device), p.of_device.kv_tokens, slots), device);
      several += device > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(several, 500);
  EXPECT_EQ(most_key_splits, gpu::most_splits);
}

TEST(AttentionWork, HeadsAreTakenTogetherAlike) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const Pair p = random_shape(random);
    const gpu::AttentionOrder order =
        gpu::attention_order(p.of_device, 128, static_cast<int>(p.of_model.head_width), 132);
    EXPECT_EQ(heads_together(p.of_model, 128, 132), order.together) << i;
  }
}

}  // namespace
}  // namespace fuseline
