// The derivative that is found symbolically is what differences give.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "model/programs/value_function.h"
#include "tests/support/random_formula.h"

namespace fuseline {
namespace {

// A central difference, and how far it may be off: what half the step changes, and the rounding of
// the two values.
struct Difference {
  double slope = 0, off = 0;
};

Difference difference(const ValueFunction& f, std::vector<double> at, std::size_t by) {
  const auto slope = [&](double h) {
    std::vector<double> low = at, high = at;
    low[by] -= h;
    high[by] += h;
    return (f(high) - f(low)) / (high[by] - low[by]);
  };
  const double h = 1e-4;
  const double wide = slope(h), narrow = slope(h / 2);
  // The error of a central difference falls as h²: what is left is a third of the change.
  return {(4 * narrow - wide) / 3,
          std::fabs(narrow - wide) + 8 * 0x1p-53 * (std::fabs(f(at)) + 1) / h};
}

struct Compared {
  int points = 0, kinks = 0, wrong = 0;
  std::string first{};
};

// `by`: of which parameter the derivative is taken, `differing`: of which the difference.
Compared compare(int formulas, std::size_t by, std::size_t differing) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> place(-3, 3);
  Compared all;
  for (int i = 0; i < formulas; ++i) {
    const std::string text = test::random_formula(random, {"x", "z"}, 4);
    const ValueFunction f = ValueFunction::of_text(text, {"x", "z"});
    const ValueFunction derived = f.derivative(by);
    for (int n = 0; n < 3; ++n) {
      const std::vector<double> at = {place(random), place(random)};
      const Difference d = difference(f, at, differing);
      const double found = derived(at);
      if (!std::isfinite(f(at)) || !std::isfinite(d.slope) || !std::isfinite(found)) continue;
      // Near a kink, or where the function is steep, differences say nothing.
      if (d.off > 1e-3 * (1 + std::fabs(d.slope))) {
        ++all.kinks;
        continue;
      }
      ++all.points;
      if (std::fabs(found - d.slope) <= 4 * d.off + 1e-9 * std::fabs(d.slope)) continue;
      ++all.wrong;
      if (all.first.empty())
        all.first = text + " by " + (by == 0 ? "x" : "z") + " at (" + std::to_string(at[0]) + ", " +
                    std::to_string(at[1]) + "): " + std::to_string(found) + ", differences " +
                    std::to_string(d.slope) + "; " + derived.text();
    }
  }
  return all;
}

TEST(Derivative, IsWhatDifferencesGive) {
  for (const std::size_t by : {std::size_t{0}, std::size_t{1}}) {
    const Compared all = compare(3000, by, by);
    EXPECT_GT(all.points, 4000);
    EXPECT_LT(all.kinks, all.points / 10);
    EXPECT_EQ(all.wrong, 0) << all.first;
  }
}

TEST(Derivative, OfAnotherParameterIsTold) { EXPECT_GT(compare(500, 0, 1).wrong, 100); }

TEST(Derivative, ReadsBackAsTheSameFunction) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = test::random_formula(random, {"x", "z"}, 4);
    const ValueFunction f = ValueFunction::of_text(text, {"x", "z"}).derivative(0);
    const ValueFunction again = ValueFunction::of_text(f.text(), {"x", "z"});
    const double at[] = {0.7, -1.3};
    const double a = f(at), b = again(at);
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << f.text() << "\n" << again.text();
  }
}

}  // namespace
}  // namespace fuseline
