// Plans for shapes that vary.
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/search/distribution.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

DistributionResult searched(const std::vector<ShapeWeight>& shapes, std::size_t buckets) {
  PredictionCase c;
  c.model = small_llama();
  c.gpu = test_gpu();
  c.workload = forward(1, 1);
  SearchOptions options;
  options.budget_seconds = 0;
  options.policies = {"per-operator", "coda"};
  Distribution d;
  d.shapes = shapes;
  return search_distribution(c, call_sizes(d, c.workload, 12), {.buckets = buckets}, options);
}

const std::vector<ShapeWeight> kSomeShapes = {
    {.tokens = 16, .weight = 1}, {.tokens = 300, .weight = 2}, {.tokens = 2000, .weight = 5}};

TEST(Distribution, MorePlansAreNeverSlower) {
  const DistributionResult one = searched(kSomeShapes, 1), two = searched(kSomeShapes, 2),
                           three = searched(kSomeShapes, 3);
  EXPECT_EQ(one.bucketed, one.one);
  ASSERT_EQ(one.buckets.size(), 1U);
  EXPECT_EQ(one.buckets.front().choices, one.for_all);
  EXPECT_LE(two.bucketed, one.bucketed);
  EXPECT_LE(three.bucketed, two.bucketed);
  EXPECT_LE(three.each.value(), three.bucketed.value() * (1 + 1e-12));
  // As many plans as shapes: each has its own.
  EXPECT_DOUBLE_EQ(three.bucketed.value(), three.each.value());
  for (const ShapeResult& s : one.shapes) {
    EXPECT_TRUE(s.complete);
    EXPECT_LE(s.own, s.shared);
  }
}

DistributionResult searched_mixed(const std::vector<std::vector<SequenceGroup>>& calls) {
  PredictionCase c;
  c.model = small_llama();
  c.gpu = test_gpu();
  c.workload = decode(1, 1, 1);
  SearchOptions options;
  options.budget_seconds = 0;
  options.policies = {"per-operator", "coda"};
  Distribution d;
  for (const auto& call : calls) d.shapes.push_back(mixed_shape(call, 1));
  return search_distribution(c, call_sizes(d, c.workload, 12), {.buckets = 1}, options);
}

// The fallback's time is that of `predict --sequences` for its policy.
TEST(Distribution, CallsWhoseSequencesDifferTakeWhatPredictionsSay) {
  const std::vector<SequenceGroup> call = {{7, 1, 900}, {1, 64, 300}};
  const DistributionResult r = searched_mixed({call});
  const MixedCall plain = predict_mixed("per-operator", small_llama(), test_gpu(), decode(1, 1, 1),
                                        call, {}, Launching::graph);
  ASSERT_EQ(r.shapes.size(), 1U);
  EXPECT_NEAR(r.shapes[0].fallback.value(), plain.whole().time.value(),
              1e-9 * plain.whole().time.value());
  EXPECT_LE(r.shapes[0].own, r.shapes[0].fallback);
}

TEST(Distribution, PaddedCallsHaveTheLargestGroupInEachPlace) {
  const DistributionResult r = searched_mixed({{{4, 1, 200}}, {{2, 1, 900}, {1, 64, 300}}});
  ASSERT_EQ(r.padded.size(), 1U);
  EXPECT_EQ(r.padded[0].size.sequences, (std::vector<SequenceGroup>{{4, 1, 900}, {1, 64, 300}}));
  EXPECT_GE(r.padded_mean, r.each);
}

TEST(Distribution, MeanIsWeighted) {
  const DistributionResult r = searched(kSomeShapes, 1);
  double sum = 0, weights = 0;
  for (const ShapeResult& s : r.shapes) {
    sum += s.own.value() * s.shape.weight;
    weights += s.shape.weight;
  }
  EXPECT_DOUBLE_EQ(r.each.value(), sum / weights);
  // The plan of a shape alone is the one that the search finds for it.
  EXPECT_DOUBLE_EQ(searched({kSomeShapes[1]}, 1).one.value(), r.shapes[1].own.value());
}

TEST(Distribution, PaddedCallsTakeTheTimeOfTheirBucketsLargestSize) {
  const DistributionResult one = searched(kSomeShapes, 1), three = searched(kSomeShapes, 3);
  EXPECT_EQ(one.padded_mean, one.shapes.back().own);
  for (const ShapeResult& s : one.shapes) EXPECT_EQ(s.padded, one.shapes.back().own);
  // A bucket for each size pads nothing.
  EXPECT_DOUBLE_EQ(three.padded_mean.value(), three.each.value());
  EXPECT_LE(three.padded_mean, one.padded_mean);
  EXPECT_EQ(three.by_padded.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_GE(three.by_padded[k], three.by_buckets[k]);
}

TEST(Distribution, PadsToTheLargestOfEverySize) {
  // Neither shape is the larger one in both: both are padded to 4 sequences of 256 tokens.
  const std::vector<ShapeWeight> shapes = {{.batch = 1, .tokens = 256}, {.batch = 4, .tokens = 64}};
  const DistributionResult r = searched(shapes, 1);
  ASSERT_EQ(r.padded.size(), 1U);
  EXPECT_EQ(r.padded.front().size.batch, 4);
  EXPECT_EQ(r.padded.front().size.tokens, 256);
  EXPECT_GT(r.padded_mean, r.each);
  EXPECT_GE(r.padded_mean, searched({{.batch = 4, .tokens = 256}}, 1).each);
}

TEST(Distribution, SaysWhereAFallbackNegatesTheGain) {
  // Padded to 2,000 tokens all calls are slower than without fusion: nothing is left to negate.
  const DistributionResult r =
      searched({{.tokens = 16, .weight = 5}, {.tokens = 300, .weight = 2}, {.tokens = 2000}}, 1);
  EXPECT_GT(r.padded_mean, r.fallback);
  EXPECT_FALSE(r.fallback_negates_padded.has_value());
  // Padded by a few tokens, they gain something, up to some share of calls that fall back.
  const DistributionResult near = searched({{.tokens = 1984}, {.tokens = 2000}}, 1);
  ASSERT_TRUE(near.fallback_negates_padded.has_value());
  const double f = *near.fallback_negates_padded;
  EXPECT_GT(f, 0);
  EXPECT_LE(f, 1);
  EXPECT_NEAR((near.each * (1 - f) + near.fallback * f) / near.padded_mean, 1, 1e-9);
  // A bucket's share of calls that would be faster unfused and not padded.
  double slower = 0, weights = 0;
  for (const ShapeResult& s : r.shapes) {
    weights += s.shape.weight;
    if (s.fallback < s.padded) slower += s.shape.weight;
  }
  EXPECT_DOUBLE_EQ(r.padded.front().slower, slower / weights);
}

TEST(Distribution, CallsShareTheTimeOfCompiling) {
  const DistributionResult r = searched(kSomeShapes, 1);
  EXPECT_TRUE(r.calls_assumed);
  for (const Serving& s : r.servings) {
    EXPECT_DOUBLE_EQ(s.compile.value(), 0.9 * s.kernels);
    EXPECT_DOUBLE_EQ(s.call.value(), s.block.value() * 4 + s.compile.value() / r.calls);
    if (!s.earned_after) continue;
    // After so many calls, both have taken equally long.
    const Serving& plain = r.servings.front();
    const double n = *s.earned_after;
    if (n <= 0) continue;  // it is ahead from the first call
    EXPECT_NEAR((s.block.value() * 4 * n + s.compile.value()) /
                    (plain.block.value() * 4 * n + plain.compile.value()),
                1, 1e-9);
  }
  // One set of choices shares its kernels between sizes; compiled for each size, none are shared.
  const auto kernels = [&](const std::string& way) {
    return std::ranges::find(r.servings, way, &Serving::way)->kernels;
  };
  EXPECT_LT(kernels("one-plan"), kernels("compiled-each"));
  EXPECT_EQ(kernels("compiled-cached"), kernels("compiled-each"));  // all three are kept
}

}  // namespace
}  // namespace fuseline
