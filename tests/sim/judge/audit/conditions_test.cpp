#include "sim/judge/audit/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fuseline::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Point point(const std::string& gpu, int tokens, bool holds) {
  return {{{"GPU", gpu}, {"tokens", std::to_string(tokens), static_cast<double>(tokens), true}},
          holds};
}

TEST(Conditions, NameTheValuesThatAllHoldingPointsHave) {
  const Conditions c = conditions_of({point("a", 512, false), point("a", 2048, true),
                                      point("b", 512, false), point("b", 2048, false)});
  EXPECT_THAT(c.necessary, ElementsAre("GPU a", "tokens >= 2,048"));
  EXPECT_EQ(c.meeting, 1U);
  EXPECT_EQ(c.holding, 1U);
}

TEST(Conditions, BoundsGoEitherWayAndHolesAreListed) {
  const auto tokens = [](std::vector<int> holding) {
    std::vector<Point> points;
    for (const int t : {1, 512, 2048, 8192}) {
      points.push_back(point("a", t, std::count(holding.begin(), holding.end(), t) > 0));
    }
    return conditions_of(points).necessary;
  };
  EXPECT_THAT(tokens({1, 512}), ElementsAre("tokens <= 512"));
  EXPECT_THAT(tokens({8192}), ElementsAre("tokens >= 8,192"));
  EXPECT_THAT(tokens({1}), ElementsAre("tokens 1"));
  EXPECT_THAT(tokens({512, 2048}), ElementsAre("tokens 512 or 2,048"));
}

TEST(Conditions, SayWhenTheyAreNotEnough) {
  const Conditions c = conditions_of({point("a", 512, true), point("a", 2048, false),
                                      point("b", 512, false), point("b", 2048, true)});
  EXPECT_THAT(c.necessary, IsEmpty());
  EXPECT_EQ(c.meeting, 4U);
  EXPECT_EQ(c.holding, 2U);
}

TEST(Conditions, AreNoneWhereNothingHolds) {
  EXPECT_THAT(conditions_of({point("a", 512, false)}).necessary, IsEmpty());
}

TEST(Alternatives, GiveEachValueItsOwnConditions) {
  EXPECT_EQ(alternatives({point("a", 512, true), point("a", 2048, true), point("b", 512, false),
                          point("b", 2048, true)}),
            "GPU a, or GPU b with tokens >= 2,048");
}

TEST(Alternatives, AreNoneWhereTheyDoNotTellPointsApart) {
  std::vector<Point> points;
  for (const int tokens : {1, 2, 3, 4}) {
    for (const bool holds : {true, false}) points.push_back(point("a", tokens, holds));
  }
  EXPECT_EQ(alternatives(points), "");
}

TEST(SharesHolding, CountEachValue) {
  const std::vector<ShareHolding> shares =
      shares_holding({point("a", 512, true), point("a", 64, false), point("b", 64, false)}, 0);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].value, "a");
  EXPECT_EQ(shares[0].holding, 1U);
  EXPECT_EQ(shares[0].points, 2U);
  EXPECT_EQ(shares[1].share(), 0);
}

}  // namespace
}  // namespace fuseline::audit
