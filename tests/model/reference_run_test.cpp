// What run_reference takes, refuses and gives; random inputs and their comparison.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "model/blocks/block.h"
#include "tests/model/reference_support.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using namespace test::reference;

TEST(ReferenceBlock, GivesFiniteOutputsThatDependOnEveryInput) {
  for (const bool llama : {true, false}) {
    const Graph g =
        build_block(llama ? test::tiny_llama() : test::tiny_gpt(), test::decode(2, 2, 5));
    const NamedTensors in = random_inputs(g, 21);
    const TensorValues base = run_reference(g, in);
    ASSERT_EQ(disagreement(base.at("y"), base.at("y"), 0.0), "");
    for (const auto& [name, values] : in) {
      NamedTensors changed = in;
      // The first element of each is used: old cache rows, the first weight, the first input.
      changed[name][0] += 0.5;
      const TensorValues other = run_reference(g, changed);
      EXPECT_GT(relative_l2(other.at("y"), base.at("y")), 1e-9) << name;
    }
  }
}

TEST(RunReference, NamesAMissingInput) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 2));
  NamedTensors in = random_inputs(g, 1);
  in.erase("w_down");
  try {
    run_reference(g, in);
    FAIL() << "a missing input was accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().field, "w_down");
  }
}

TEST(RunReference, RefusesInputsOfTheWrongSize) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 2));
  NamedTensors in = random_inputs(g, 1);
  in["x"].pop_back();
  EXPECT_THROW(run_reference(g, in), InputError);
}

TEST(RunReference, NamesTensorAndIndexOfAValueThatIsNotFinite) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 2));
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    NamedTensors in = random_inputs(g, 1);
    in["x"][23] = bad;
    try {
      run_reference(g, in);
      FAIL() << "the value was accepted";
    } catch (const InputError& e) {
      EXPECT_EQ(e.problem().field, "x[1, 3]");
    }
  }
}

TEST(RandomInputs, AreTheSameForTheSameNameAndDifferBetweenNamesAndSeeds) {
  const Graph prompt = build_block(test::tiny_llama(), test::forward(1, 3));
  const Graph step = build_block(test::tiny_llama(), test::decode(1, 3, 9));
  EXPECT_EQ(random_inputs(prompt, 1).at("w_qkv"), random_inputs(step, 1).at("w_qkv"));
  EXPECT_NE(random_inputs(prompt, 1).at("w_qkv"), random_inputs(prompt, 2).at("w_qkv"));
  EXPECT_NE(random_inputs(prompt, 1).at("w_norm1"), random_inputs(prompt, 1).at("w_norm2"));
}

TEST(RandomInputs, HaveOutliers) {
  const Graph g = build_block(test::tiny_llama(), test::forward(4, 8));
  const Vector x = random_inputs(g, 1).at("x");
  double largest = 0;
  for (const double e : x) largest = std::max(largest, std::abs(e));
  EXPECT_GT(largest, 20.0);
  EXPECT_LT(norm(x) / std::sqrt(static_cast<double>(x.size())), largest / 3);
}

TEST(Disagreement, AcceptsErrorsWithinTheToleranceOnly) {
  const Vector want{1, 2, 2};
  EXPECT_EQ(disagreement({1, 2, 2.003}, want, 1.01e-3), "");
  EXPECT_NE(disagreement({1, 2, 2.003}, want, 0.99e-3), "");
}

TEST(Disagreement, NeverAcceptsEmptyWork) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(disagreement({0, 0}, {0, 0}, 1), "");
  EXPECT_NE(disagreement({3, 3}, {3, 3}, 1), "");
  EXPECT_NE(disagreement({0, 0}, {1, 2}, 10), "");
  EXPECT_NE(disagreement({1, nan}, {1, 2}, 10), "");
  EXPECT_NE(disagreement({1, 2, 3}, {1, 2}, 10), "");
}

}  // namespace
}  // namespace fuseline
