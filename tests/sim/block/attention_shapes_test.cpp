// Attention as data: masks, widths of keys and values apart, keys as many as there are, capped and
// biased scores.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "model/backward.h"
#include "model/operators/all_operators.h"
#include "sim/memory/traffic.h"
#include "sim/memory/visible_keys.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/plan_proof.h"

namespace fuseline {
namespace {

using test::expect_proved;
using test::GraphByHand;
using test::pick;
using test::Proof;

Graph attention(const AttentionShape& a, bool biased) {
  GraphByHand b;
  const std::int64_t rows = a.batch * a.q_tokens;
  const Operand q = b.tensor("q", Role::input, rows, a.heads * a.head_width);
  const Operand k = b.tensor("k", Role::input, a.batch * a.kv_tokens, a.kv_heads * a.head_width);
  const Operand v = b.tensor("v", Role::input, a.batch * a.kv_tokens, a.kv_heads * a.v_width());
  const std::int64_t pairs = rows * a.heads;
  const Operand scores = b.tensor("scores", Role::activation, pairs, a.kv_tokens);
  const Operand probs = b.tensor("probs", Role::activation, pairs, a.kv_tokens);
  const Operand y = b.tensor("y", Role::output, rows, a.heads * a.v_width());
  std::vector<Operand> reads{q, k};
  if (biased) reads.push_back(b.tensor("bias", Role::input, a.heads * a.q_tokens, a.kv_tokens));
  b.op("scores", operators::attention_scores, reads, {scores}, a);
  b.op("softmax", operators::softmax, {scores}, {probs}, a);
  b.op("context", operators::attention_context, {probs, v}, {y}, a);
  return b.graph;
}

AttentionShape shape(std::mt19937& random) {
  AttentionShape a;
  a.kv_heads = pick(random, 1, 3);
  a.heads = a.kv_heads * pick(random, 1, 3);
  a.head_width = pick(random, 2, 24);
  a.batch = pick(random, 1, 3);
  a.kv_tokens = pick(random, 2, 300);
  a.q_tokens = pick(random, 1, 300);
  a.scale = 1 / std::sqrt(static_cast<double>(a.head_width));
  return a;
}

std::string text(const AttentionShape& a) {
  return "T " + std::to_string(a.q_tokens) + " S " + std::to_string(a.kv_tokens) + " causal " +
         std::to_string(a.causal) + " window " + std::to_string(a.window) + " prefix " +
         std::to_string(a.prefix);
}

void expect_proved_alone_and_fused(const AttentionShape& a, bool biased, const std::string& what) {
  const Graph graph = attention(a, biased);
  const Proof proof(graph);
  for (const char* policy : {"unfused", "flash-attention"})
    proof.of(make_plan(policy, graph), policy + (' ' + what) + ' ' + text(a));
}

TEST(AttentionShapes, KeysOfAnotherStream) {
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) expect_proved_alone_and_fused(shape(random), false, "cross");
}

TEST(AttentionShapes, MasksAreData) {
  std::mt19937 random(2);
  for (int i = 0; i < 24; ++i) {
    AttentionShape a = shape(random);
    a.causal = true;
    a.kv_tokens = a.q_tokens + pick(random, 0, 80);
    if (i % 3 == 1) a.window = pick(random, 1, 90);
    if (i % 3 == 2) a.prefix = pick(random, 1, a.kv_tokens + 9);
    expect_proved_alone_and_fused(a, false, "mask");
  }
}

TEST(AttentionShapes, WidthsOfKeysAndValuesApart) {
  std::mt19937 random(3);
  for (int i = 0; i < 10; ++i) {
    AttentionShape a = shape(random);
    a.value_width = pick(random, 1, 30);
    expect_proved_alone_and_fused(a, false, "widths");
  }
}

TEST(AttentionShapes, CappedAndBiasedScores) {
  std::mt19937 random(4);
  for (int i = 0; i < 18; ++i) {
    AttentionShape a = shape(random);
    a.causal = i % 2 == 0;
    if (a.causal) a.kv_tokens = a.q_tokens + pick(random, 0, 20);
    if (i % 3 != 0) a.softcap = 0.5 + static_cast<double>(pick(random, 0, 40)) / 10;
    expect_proved_alone_and_fused(a, i % 3 != 1, "cap, bias");
  }
}

// The visible pairs, and the ranges that tiles walk, against every pair asked one by one.
TEST(AttentionShapes, VisibleKeysAreThoseOfTheMask) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    AttentionShape a = shape(random);
    a.q_tokens = pick(random, 1, 40);
    a.kv_tokens = a.q_tokens + pick(random, 0, 20);
    a.causal = true;
    if (i % 2 == 0) a.prefix = pick(random, 1, a.kv_tokens + 5);
    if (i % 5 == 0) a.window = pick(random, 1, 30);
    const std::int64_t before = a.kv_tokens - a.q_tokens;
    const auto sees = [&](std::int64_t t, std::int64_t s) {
      const bool early = a.window > 0 && s <= before + t - a.window;
      return !early && (s <= before + t || s < a.prefix);
    };
    std::int64_t pairs = 0;
    for (std::int64_t t = 0; t < a.q_tokens; ++t)
      for (std::int64_t s = 0; s < a.kv_tokens; ++s) pairs += sees(t, s) ? 1 : 0;
    EXPECT_EQ(visible_pairs(a), pairs) << text(a);
    const std::int64_t tile = pick(random, 1, 9);
    for (std::int64_t first = 0; first < a.q_tokens; first += tile) {
      const KeyRange range = visible_keys(a, first, std::min(tile, a.q_tokens - first));
      for (std::int64_t t = first; t < std::min(first + tile, a.q_tokens); ++t)
        for (std::int64_t s = 0; s < a.kv_tokens; ++s)
          if (sees(t, s)) {
            EXPECT_TRUE(s >= range.begin && s < range.end) << text(a) << t << ' ' << s;
            const KeyRange queries = query_tiles_that_see(a, s, 1, tile);
            EXPECT_TRUE(t >= queries.begin && t < queries.end) << text(a) << t << ' ' << s;
          }
    }
  }
}

TEST(AttentionShapes, GradientsThatAreNotBuiltAreRefused) {
  AttentionShape a{.heads = 2,
                   .kv_heads = 2,
                   .head_width = 64,
                   .batch = 1,
                   .q_tokens = 64,
                   .kv_tokens = 64,
                   .scale = 0.125};
  a.softcap = 30;
  expect_proved(make_plan("flash-attention", differentiate(attention(a, false))), "capped scores");
  EXPECT_THROW(static_cast<void>(differentiate(attention(a, true))), InputError);
  a.softcap = 0;
  EXPECT_THROW(static_cast<void>(differentiate(attention(a, true))), InputError);
}

// In one kernel, in three products, and with sums over the heads that share keys behind it.
TEST(AttentionShapes, GradientsOfWidthsApart) {
  std::mt19937 random(7);
  for (int i = 0; i < 6; ++i) {
    AttentionShape a = shape(random);
    a.value_width = pick(random, 1, 30);
    a.causal = i % 2 == 0;
    if (a.causal) a.kv_tokens = a.q_tokens;
    const Graph joint = differentiate(attention(a, false));
    const Proof proof(joint);
    for (const char* policy : {"unfused", "flash-attention", "eager"})
      proof.of(make_plan(policy, joint), policy + (" widths " + text(a)));
  }
}

}  // namespace
}  // namespace fuseline
