#include "lab/course/moment.h"

#include <gtest/gtest.h>

#include "lab/course/late_rules.h"

namespace fuseline::lab {
namespace {

using std::chrono::minutes;

Moment at(const std::string& text) { return parse_moment(text, minutes{0}).value(); }

TEST(CourseMoment, IsReadAsPeopleAndPlatformsWriteIt) {
  const Moment wanted = at("2026-11-02 22:59");
  EXPECT_EQ(at("2026-11-02T22:59:00Z"), wanted);
  EXPECT_EQ(at("2026-11-02 23:59 +01:00"), wanted);
  EXPECT_EQ(at("2026-11-02T17:29:00-0530"), wanted);
  EXPECT_EQ(parse_moment("2026-11-02 23:59", minutes{60}), wanted);
  // Its own offset goes before the course's.
  EXPECT_EQ(parse_moment("2026-11-02 22:59 Z", minutes{60}), wanted);
  EXPECT_EQ(at("1970-01-01 00:00").time_since_epoch().count(), 0);
}

TEST(CourseMoment, IsWrittenAsItIsRead) {
  for (const int east : {0, 60, -330, 840}) {
    const std::string text = moment_text(at("2024-02-29 23:30"), minutes{east});
    EXPECT_EQ(parse_moment(text, minutes{17}), at("2024-02-29 23:30")) << text;
  }
  EXPECT_EQ(moment_text(at("2026-11-02 23:30"), minutes{60}), "2026-11-03 00:30 +01:00");
}

TEST(CourseMoment, RefusesWhatNoCalendarHas) {
  for (const char* text :
       {"", "2026-11-02", "2026-02-29 10:00", "2026-13-01 10:00", "2026-11-31 10:00",
        "2026-11-02 24:00", "2026-11-02 10:60", "2026-11-02 10:00:60", "02.11.2026 10:00",
        "2026-11-02 10:00 CET", "2026-11-02 10:00 +15:00", "2026-11-02 10:00 +1", "now"}) {
    EXPECT_FALSE(parse_moment(text, minutes{0})) << text;
  }
}

TEST(CourseLateness, CountsDaysBegunAfterTheGrace) {
  const Moment due = at("2026-11-02 23:59");
  const LateRules rules{.percent_per_day = 10, .days = 2, .grace_minutes = 15};
  const auto days = [&](const char* text) { return lateness(at(text), due, rules).days; };
  EXPECT_EQ(days("2026-11-01 00:00"), 0);
  EXPECT_EQ(days("2026-11-02 23:59"), 0);
  EXPECT_EQ(days("2026-11-03 00:14"), 0);
  EXPECT_EQ(days("2026-11-03 00:14:01"), 1);
  EXPECT_EQ(days("2026-11-04 00:14"), 1);
  EXPECT_EQ(days("2026-11-04 00:15"), 2);
  EXPECT_FALSE(lateness(at("2026-11-05 00:14"), due, rules).too_late);
  EXPECT_TRUE(lateness(at("2026-11-05 00:15"), due, rules).too_late);
}

TEST(CourseLateness, TakesPercentOfThePointsAndNeverMore) {
  const LateRules rules{.percent_per_day = 30, .days = 5, .grace_minutes = 0};
  EXPECT_EQ(late_deduction(7, {.days = 0}, rules), 0);
  EXPECT_EQ(late_deduction(7, {.days = 1}, rules), 210);  // 2.1 points
  EXPECT_EQ(late_deduction(7, {.days = 4}, rules), 700);
  EXPECT_EQ(late_deduction(7, {.days = 6, .too_late = true}, rules), 700);
  EXPECT_EQ(late_deduction(0, {.days = 2}, rules), 0);
}

}  // namespace
}  // namespace fuseline::lab
