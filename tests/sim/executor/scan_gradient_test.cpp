// The gradients of scans and of convolutions along tokens: executed with the bytes that are
// predicted and the results of fp64, over odd sizes, several sequences and several pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "model/backward.h"
#include "tests/model/primitive_support.h"
#include "tests/model/scan_support.h"
#include "tests/sim/plan_proof.h"

namespace fuseline {
namespace {

using test::expect_proved;
using test::pick;
using test::scan_of_steps;
using test::ScanCase;
using testing::Contains;
using testing::HasSubstr;

TEST(ScanGradient, IsProvedForRandomSizes) {
  std::mt19937 random(41);
  const std::vector<std::string> trains{"unfused", "per-operator", "coda", "xla"};
  for (int round = 0; round < 24; ++round) {
    ScanCase c = test::random_scan(random);
    // A single token has no decay: the gradient of its rates is zero, which proves nothing.
    c.shape.tokens = std::max<std::int64_t>(c.shape.tokens, 2);
    const bool columns = round % 2 == 0;
    const std::string& policy = trains[static_cast<std::size_t>(round) % trains.size()];
    const Graph forward = scan_of_steps(c, columns);
    expect_proved(make_plan(policy, differentiate(forward)),
                  policy + " " + test::describe(c) + (columns ? " columns" : ""));
  }
}

// Longer than the 2048 tokens behind which states are kept where columns have their own rates.
TEST(ScanGradient, BeginsItsPiecesWithKeptStates) {
  const ScanCase c{.shape = {.heads = 2,
                             .groups = 1,
                             .head_width = 2,
                             .state_width = 3,
                             .batch = 2,
                             .tokens = 2100,
                             .chunk = 50}};
  const Graph joint = differentiate(scan_of_steps(c, true));
  const Op& back = joint.op(joint.find_op("d_y_op").value());
  ASSERT_EQ(back.reads.size(), 7U);
  EXPECT_EQ(c.shape.kept_tokens(true), 2000);
  EXPECT_EQ(back.reads[6].rows, 2 * 1 * 2 * 2);  // all pieces but the last
  expect_proved(make_plan("per-operator", joint), "two pieces");
  const ScanCase short_one{.shape = {1, 1, 2, 3, 2, 40, 64}};
  const Graph one = differentiate(scan_of_steps(short_one, false));
  EXPECT_EQ(one.op(one.find_op("d_y_op").value()).reads.size(), 6U);  // one chunk needs no state
}

TEST(ScanGradient, CostsMoreThanTheScan) {
  const Graph joint = differentiate(
      scan_of_steps({.shape = {8, 1, 64, 128, 1, 2048, 256}, .dtype = Dtype::bf16}, false));
  const PlanEstimate e =
      simulate(make_plan("per-operator", joint), load_gpu("h200"), Fidelity::hierarchy);
  double there = 0, back = 0;
  for (const KernelEstimate& k : e.kernels) {
    if (k.name == "y_op") there = k.time.value();
    if (k.name == "d_y_op") back = k.time.value();
  }
  EXPECT_GT(there, 0);
  EXPECT_GT(back, there);
}

TEST(ScanGradient, IsRefusedWhereItDoesNotFit) {
  const Graph joint =
      differentiate(scan_of_steps({.shape = {4, 2, 3, 5, 2, 10, 4}, .dtype = Dtype::bf16}, false));
  const Plan plan = make_plan("per-operator", joint);
  const Program* right = nullptr;
  for (const Kernel& kernel : plan.kernels)
    for (const Program& p : kernel.phases)
      if (const auto* m = std::get_if<ScanMainloop>(&p.mainloop); m != nullptr && m->gradient)
        right = &p;
  ASSERT_NE(right, nullptr);
  const auto problems = [&](auto change) {
    Program bad = *right;
    change(std::get<ScanMainloop>(bad.mainloop));
    return check_program(plan.graph, bad);
  };
  EXPECT_EQ(check_program(plan.graph, *right), std::vector<std::string>{});
  EXPECT_THAT(problems([](ScanMainloop& m) { m.gradient->dy.cols = 3; }),
              Contains(HasSubstr("gradient of the result =")));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.gradient->dk.rows = 3; }),
              Contains(HasSubstr("gradient of the key =")));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.gradient->states.reset(); }),
              Contains(HasSubstr("none are kept")));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.gradient->d_rates.reset(); }),
              Contains(HasSubstr("rates and their gradient are not together")));
  EXPECT_THAT(problems([](ScanMainloop& m) { m.gradient->dk = m.k; }),
              Contains(HasSubstr("is not fp32")));
}

TEST(ConvolutionGradient, IsProvedForRandomSizes) {
  std::mt19937 random(43);
  const std::vector<std::string> trains{"unfused", "eager", "torch-compile", "coda"};
  for (int round = 0; round < 24; ++round) {
    const ConvolutionShape shape{pick(random, 1, 3), pick(random, 1, 40), pick(random, 1, 6)};
    const std::string& policy = trains[static_cast<std::size_t>(round) % trains.size()];
    const Graph forward = test::conv_graph(shape, pick(random, 2, 300), false,
                                           round % 3 == 0 ? Dtype::bf16 : Dtype::fp32);
    expect_proved(make_plan(policy, differentiate(forward)),
                  policy + " round " + std::to_string(round));
  }
}

}  // namespace
}  // namespace fuseline
