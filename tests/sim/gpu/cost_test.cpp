#include "sim/gpu/cost.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

// 3.60 an hour is 0.001 a second; 4 sequences in 2 s make 2 tokens a second.
TEST(Cost, IsPriceOverTokens) {
  const Money cost = cost_per_million_tokens(MoneyPerHour(3.60), Seconds(2), decode(4, 1, 100));
  EXPECT_DOUBLE_EQ(cost.value(), 500);
}

TEST(Cost, CountsEveryTokenOfTheWorkload) {
  const Seconds time(1);
  const Money one = cost_per_million_tokens(MoneyPerHour(1), time, forward(1, 1));
  const Money many = cost_per_million_tokens(MoneyPerHour(1), time, forward(4, 512));
  EXPECT_DOUBLE_EQ(one.value(), many.value() * 4 * 512);
}

TEST(Cost, NamesTheTokens) {
  EXPECT_STREQ(tokens_paid_for(Phase::forward), "prompt");
  EXPECT_STREQ(tokens_paid_for(Phase::decode), "generated");
}

}  // namespace
}  // namespace fuseline
