// What a function of one's own becomes in a kernel.
#include <gtest/gtest.h>

#include "model/programs/value_function.h"

namespace fuseline {
namespace {

// The compiler's exact exponential and division took longer than an epilogue has: these are the
// hardware's, as in the maps of this project.
TEST(DeviceText, TakesTheHardwaresExponentialAndReciprocal) {
  const auto text = [](const char* formula) {
    return ValueFunction::of_text(formula, {"x"}).device_text();
  };
  EXPECT_EQ(text("x * sigmoid(x)"), "(x * sigmoid_of(x))");
  EXPECT_EQ(text("exp(x)"), "fast_exp(x)");
  EXPECT_EQ(text("x / (x + x)"), "(x * fast_reciprocal((x + x)))");
}

}  // namespace
}  // namespace fuseline
