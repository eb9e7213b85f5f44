// Plans for shapes that vary.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/search/distribution.h"
#include "tests/sim/sim_support.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

using test::problem_of;
using testing::HasSubstr;

std::string shapes_file(const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / "shapes.csv";
  std::ofstream(path) << text;
  return path.string();
}

DistributionResult searched(const std::vector<ShapeWeight>& shapes, std::size_t buckets) {
  PredictionCase c;
  c.model = small_llama();
  c.gpu = test_gpu();
  c.workload = forward(1, 1);
  SearchOptions options;
  options.budget_seconds = 0;
  options.policies = {"per-operator", "coda"};
  return search_distribution(c, shapes, buckets, options);
}

const std::vector<ShapeWeight> kSomeShapes = {
    {.tokens = 16, .weight = 1}, {.tokens = 300, .weight = 2}, {.tokens = 2000, .weight = 5}};

TEST(Distribution, MorePlansAreNeverSlower) {
  const DistributionResult one = searched(kSomeShapes, 1), two = searched(kSomeShapes, 2),
                           three = searched(kSomeShapes, 3);
  EXPECT_EQ(one.bucketed, one.one);
  EXPECT_EQ(one.buckets, std::vector<std::size_t>{one.for_all});
  EXPECT_LE(two.bucketed, one.bucketed);
  EXPECT_LE(three.bucketed, two.bucketed);
  EXPECT_LE(three.each, three.bucketed);
  // As many plans as shapes: each has its own.
  EXPECT_EQ(three.bucketed, three.each);
  for (const ShapeResult& s : one.shapes) {
    EXPECT_TRUE(s.complete);
    EXPECT_LE(s.own, s.shared);
  }
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
  EXPECT_EQ(searched({kSomeShapes[1]}, 1).one, r.shapes[1].own);
}

TEST(Distribution, ReadsShapesThatHaveWeight) {
  const auto shapes = read_distribution(
      shapes_file("batch,tokens,context,weight\n1,64,0,0.5\n2,32,0,0\n4,1,100,3\n"));
  ASSERT_EQ(shapes.size(), 2U);
  EXPECT_EQ(shapes[1].batch, 4);
  EXPECT_EQ(shapes[1].context, 100);
  EXPECT_EQ(shapes[1].weight, 3);
}

TEST(DistributionRefuses, WhatHasNoWeightOrNoSize) {
  const auto problem = [](const std::string& text) {
    return problem_of(
        [&] { read_distribution(shapes_file("batch,tokens,context,weight\n" + text)); });
  };
  EXPECT_THAT(problem("1,64,0,0\n").message, HasSubstr("is 0 on every line"));
  EXPECT_EQ(problem("1,64,0,-1\n").line, 2);
  EXPECT_EQ(problem("0,64,0,1\n").value, "0");
  EXPECT_THAT(problem("1,64,0,1\n1,64,0,2\n").message, HasSubstr("an earlier line has"));
  EXPECT_EQ(problem("1,64,0,1\n1,64,0,2\n").line, 3);
  std::string many;
  for (int i = 1; i <= 65; ++i) many += std::to_string(i) + ",64,0,1\n";
  EXPECT_EQ(problem(many).value, "65 shapes");
}

}  // namespace
}  // namespace fuseline
