// The convolution along rows: its reference, its program, the rows that a tile takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/lower.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "tests/model/primitive_support.h"
#include "tests/model/reference_support.h"
#include "tests/model/scan_support.h"

namespace fuseline {
namespace {

using test::reference::at;
using ::testing::Contains;
using ::testing::HasSubstr;

ConvolutionShape random_shape(std::mt19937& random) {
  return {test::pick(random, 1, 4), test::pick(random, 1, 20), test::pick(random, 1, 6)};
}

// Every sequence by itself, written out behind its rows before.
TEST(ConvRows, ReferenceEqualsAPaddedSequence) {
  std::mt19937 random(21);
  for (int round = 0; round < 100; ++round) {
    const ConvolutionShape s = random_shape(random);
    const std::int64_t C = test::pick(random, 1, 9);
    const bool before = s.taps > 1 && random() % 2 == 0;
    const Graph graph = test::conv_graph(s, C, before);
    const NamedTensors in = test::scan_inputs(graph, random);
    const auto got = run_reference(graph, in).at("y");
    const std::int64_t halo = s.taps - 1;
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t c = 0; c < C; ++c) {
        std::vector<double> padded(static_cast<std::size_t>(halo), 0.0);
        for (std::int64_t i = 0; before && i < halo; ++i)
          padded[static_cast<std::size_t>(i)] = at(in.at("before"), C, b * halo + i, c);
        for (std::int64_t t = 0; t < s.tokens; ++t)
          padded.push_back(at(in.at("x"), C, b * s.tokens + t, c));
        for (std::int64_t t = 0; t < s.tokens; ++t) {
          double want = 0;
          for (std::int64_t j = 0; j < s.taps; ++j)
            want += at(in.at("w"), C, j, c) * padded.at(static_cast<std::size_t>(t + j));
          ASSERT_NEAR(at(got, C, b * s.tokens + t, c), want, 1e-12);
        }
      }
    EXPECT_EQ(flops(graph, graph.ops()[0]), Flops(2 * s.taps * s.batch * s.tokens * C));
  }
}

// Rows that the window of each row of a tile touches, collected one by one.
TEST(ConvRows, ATileTakesItsRowsAndThoseAbove) {
  std::mt19937 random(22);
  for (int round = 0; round < 300; ++round) {
    const ConvolutionShape s = random_shape(random);
    const std::int64_t first = test::pick(random, 0, s.batch * s.tokens - 1);
    const std::int64_t count = test::pick(random, 1, s.batch * s.tokens - first);
    std::set<std::int64_t> rows;
    std::set<std::int64_t> before;
    for (std::int64_t row = first; row < first + count; ++row)
      for (std::int64_t back = 0; back < s.taps; ++back) {
        const std::int64_t at = row % s.tokens - back;
        if (at >= 0)
          rows.insert(row - back);
        else
          before.insert(row / s.tokens * (s.taps - 1) + s.taps - 1 + at);
      }
    const Access own{
        .operand = {}, .reach = Reach::rows_above, .halo = s.taps - 1, .tokens = s.tokens};
    const Access ahead{
        .operand = {}, .reach = Reach::rows_before, .halo = s.taps - 1, .tokens = s.tokens};
    ASSERT_EQ(own.rows_of_tile(first, count), std::ssize(rows));
    ASSERT_EQ(ahead.rows_of_tile(first, count), std::ssize(before));
  }
}

TEST(ConvRows, IsAKernelThatSaysWhatItDoes) {
  const Graph graph = test::conv_graph({2, 10, 4}, 24, true);
  const Plan plan = make_plan("per-operator", graph);
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_EQ(std::string(name_of(plan.kernels[0].kind)), "conv");
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  EXPECT_THAT(print_program(plan.graph, plan.kernels[0].phases[0]),
              HasSubstr("conv = convolve_rows(x[20,24], w[4,24], before before[6,24])"));
}

TEST(ConvRows, ChecksItsShapesByName) {
  const Graph graph = test::conv_graph({2, 10, 4}, 24, true);
  const Program good = lower(graph, "conv", {OpId{0}});
  ASSERT_EQ(check_program(graph, good), std::vector<std::string>{});
  const auto problems = [&](auto how) {
    Program bad = good;
    test::change<ConvolveRows>(bad.body[0], how);
    return check_program(graph, bad);
  };
  EXPECT_THAT(problems([](ConvolveRows& c) { c.from.rows = 19; }),
              Contains("conv: convolved operand x is [19, 24], not [20, 24]"));
  EXPECT_THAT(problems([](ConvolveRows& c) { c.weight.rows = 3; }),
              Contains("conv: weight = w is [3, 24], not [4, 24]"));
  EXPECT_THAT(problems([](ConvolveRows& c) { c.before->rows = 8; }),
              Contains("conv: rows before = before is [8, 24], not [6, 24]"));
  EXPECT_THAT(problems([](ConvolveRows& c) { c.shape.tokens = 9; }),
              Contains("conv: 20 rows are no 2 sequences of 9 tokens"));
  EXPECT_THAT(problems([](ConvolveRows& c) { c.shape.taps = 0; }),
              Contains("conv: a dimension of the convolution is below 1"));
  Program epilogue = good;
  epilogue.mainloop = GemmMainloop{
      .a = graph.ops()[0].reads[0], .b = graph.ops()[0].reads[1], .M = 20, .N = 24, .K = 24};
  EXPECT_THAT(check_program(graph, epilogue), Contains(HasSubstr("is no epilogue")));
}

}  // namespace
}  // namespace fuseline
