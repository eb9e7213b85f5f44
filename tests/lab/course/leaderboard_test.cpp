// The race of the GPU track: which measurements count, and in which order they stand.
#include "lab/course/leaderboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fmt/format.h>

#include "cli/app.h"
#include "lab/course/course_folder.h"
#include "lab/course/race.h"
#include "model/programs/program_file.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A right answer: two programs, as lab 10 makes them.
std::string right_race(const std::string& factor = "1.5") {
  return race_head() + fmt::format(
                           "activation parts[M,⌈F/128⌉], fp32\n"
                           "let swish(z) = z * sigmoid({} * z)\n"
                           "program up\n"
                           "  y = x[M,D] · w[F,D]ᵀ\n"
                           "  rows = load_rows s[M,1]\n"
                           "  scaled = y * rows\n"
                           "  bias = load_cols b[1,F]\n"
                           "  z = scaled + bias\n"
                           "  a = swish(z)\n"
                           "  rest = load r[M,F]\n"
                           "  o = a + rest\n"
                           "  store act[M,F] = o\n"
                           "  store parts[M,⌈F/128⌉] = max(o)\n"
                           "program finish\n"
                           "  for each row of [M, ⌈F/128⌉]\n"
                           "  p = load parts[M,⌈F/128⌉]\n"
                           "  m = row_max(p)\n"
                           "  store_rows largest[M,1] = m\n",
                           factor);
}

std::string speed_of(const std::string& race, double time_us,
                     const std::string& accepted = "true") {
  return fmt::format(
      "{{\"device\": \"NVIDIA H200\", \"accepted\": {}, \"measured\": {{\"time_us\": {}}}, "
      "\"least_possible_us\": 400, \"hash\": \"{}\"}}",
      accepted, time_us, hash_of_text(race));
}

class CourseRace : public ::testing::Test {
 protected:
  CourseRace() {
    make_course({.folder = folder_,
                 .settings = {.name = "a course", .labs = {{10, {}}}},
                 .students = {"ada", "grace", "alan"}});
    course_ = load_course(folder_);
  }

  void hand_in(const std::string& place, const std::string& race, const std::string& speed) {
    const fs::path to = course_.submissions() / place / "lab-10";
    fs::create_directories(to);
    test::write_file(to / kRaceFile, race);
    test::write_file(to / kSpeedFile, speed);
  }

  [[nodiscard]] Leaderboard board() const {
    return read_leaderboard(course_, course_.submissions());
  }

  // Why the only entry does not count.
  [[nodiscard]] std::string refusal() const {
    const Leaderboard b = board();
    EXPECT_EQ(b.entries.size(), 1U);
    return b.entries.empty() ? "" : b.entries.front().refused;
  }

  fs::path folder_ = test::new_folder() / "gpu";
  Course course_;
};

TEST_F(CourseRace, TheLargestShareOfWhatIsPossibleIsFirstAndEachStudentStandsOnce) {
  hand_in("ada", right_race(), speed_of(right_race(), 500));
  hand_in("ada/again", right_race(), speed_of(right_race(), 650));
  hand_in("grace", right_race(), speed_of(right_race(), 450));
  hand_in("alan", right_race("1.25"), speed_of(right_race("1.25"), 410));
  const Leaderboard b = board();
  ASSERT_EQ(b.entries.size(), 3U);
  EXPECT_EQ(b.entries[0].student, "grace");
  EXPECT_NEAR(b.entries[0].share(), 400.0 / 450, 1e-12);
  EXPECT_EQ(b.entries[1].student, "ada");
  EXPECT_NEAR(b.entries[1].share(), 0.8, 1e-12);
  EXPECT_EQ(b.entries[2].student, "alan");
  EXPECT_THAT(b.entries[2].refused, HasSubstr("differs from fp64"));
  EXPECT_THAT(leaderboard_csv(b),
              AllOf(HasSubstr("1,grace,0.8889,450.00,400.00,NVIDIA H200,grace/lab-10,\n"),
                    HasSubstr("2,ada,0.8000,500.00,"), HasSubstr("\n,alan,,,,NVIDIA H200,")));
}

TEST_F(CourseRace, AnotherTextThanTheMeasuredOneDoesNotCount) {
  hand_in("ada", right_race() + "# quicker\n", speed_of(right_race(), 500));
  EXPECT_THAT(refusal(), HasSubstr("measured with another race.fuse"));
}

TEST_F(CourseRace, AMeasurementThatWasRefusedDoesNotCount) {
  hand_in("ada", right_race(), speed_of(right_race(), 500, "false"));
  EXPECT_THAT(refusal(), HasSubstr("not accepted"));
}

TEST_F(CourseRace, ATimeBelowThePossibleDoesNotCount) {
  hand_in("ada", right_race(), speed_of(right_race(), 399));
  EXPECT_THAT(refusal(), HasSubstr("faster than this GPU can be"));
}

TEST_F(CourseRace, OtherSizesDoNotCount) {
  std::string race = right_race();
  race.replace(race.find("4096"), 4, "2048");
  hand_in("ada", race, speed_of(race, 500));
  EXPECT_THAT(refusal(), HasSubstr("all run the race at these sizes"));
}

TEST_F(CourseRace, FilesThatAreNoMeasurementAreToldAndLoseNobodyElse) {
  hand_in("ada", right_race(), speed_of(right_race(), 500));
  for (const auto& [speed, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "JSON"},
           {"[]", "is not the answer of"},
           {"{\"device\": 3, \"measured\": {}}", "is not the answer of"},
           {"{\"device\": \"H200\", \"measured\": {\"time_us\": \"5\"}}", "time_us"},
           {"{\"device\": \"H200\", \"measured\": {\"time_us\": -1}}", "time_us"},
           {"{\"device\": \"H200\", \"measured\": {\"time_us\": 1}}", "least_possible_us"},
           {std::string(100, '['), "nest"}}) {
    hand_in("grace", right_race(), speed);
    const Leaderboard b = board();
    ASSERT_EQ(b.entries.size(), 2U) << speed;
    EXPECT_EQ(b.entries[0].student, "ada");
    EXPECT_FALSE(b.entries[1].refused.empty());
    EXPECT_THAT(b.entries[1].refused, HasSubstr(why)) << speed;
  }
}

TEST_F(CourseRace, ALinkInPlaceOfTheMeasurementDoesNotCount) {
  hand_in("ada", right_race(), speed_of(right_race(), 500));
  const fs::path speed = course_.submissions() / "ada/lab-10" / kSpeedFile;
  fs::rename(speed, folder_ / "elsewhere.json");
  fs::create_symlink(folder_ / "elsewhere.json", speed);
  EXPECT_THAT(refusal(), HasSubstr("no plain file"));
}

TEST_F(CourseRace, TheCommandWritesTheTable) {
  hand_in("ada", right_race(), speed_of(right_race(), 500));
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"course", "leaderboard", folder_.string()}, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), AllOf(HasSubstr("80.0 %"), HasSubstr("NVIDIA H200")));
  EXPECT_THAT(test::read_file(folder_ / "grades/leaderboard.csv"), HasSubstr("1,ada,0.8000"));
}

}  // namespace
}  // namespace fuseline::lab
