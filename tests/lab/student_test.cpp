#include "lab/student.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace fuseline::lab {
namespace {

// Worked out with another implementation of HMAC (Python's). They are the same on every machine.
TEST(Student, HashesAsFixedForever) {
  EXPECT_EQ(CourseSecret::from_text("0123456789abcdef").number("ada/lab1.rows"),
            0x4b005e5aaee3316aU);
  EXPECT_EQ(CourseSecret::from_text("0123456789abcdef").tag("ada", 3), "c32be2040bd63025f1b7");
  EXPECT_EQ(CourseSecret::from_text("0123456789abcdef").name(), "778b7e24");
}

TEST(Student, AnotherSecretAnotherShape) {
  const CourseSecret secret = CourseSecret::from_text("a secret of some course");
  int differ = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string id = "s" + std::to_string(i);
    if (Student(id).between("x", 1, 1000) != Student(id, secret).between("x", 1, 1000)) ++differ;
  }
  EXPECT_GE(differ, 45);
}

TEST(Student, UnnamedOnesDiffer) {
  const CourseSecret secret = CourseSecret::self_study();
  EXPECT_NE(Student::unnamed(secret).id(), Student::unnamed(secret).id());
}

TEST(Student, FactorsAreExactInFloatAndNeverOne) {
  std::set<double> seen;
  for (int i = 0; i < 500; ++i) seen.insert(Student("s" + std::to_string(i)).factor("f"));
  EXPECT_EQ(seen.size(), 26U);
  EXPECT_FALSE(seen.contains(1.0));
  EXPECT_EQ(*seen.begin(), 5.0 / 16);
  EXPECT_EQ(*seen.rbegin(), 31.0 / 16);
}

TEST(Student, SameIdSameShapes) {
  const Student a("ada@uni.example"), b("ada@uni.example");
  const std::vector<std::int64_t> choices = {2, 3, 5, 7, 11, 13};
  for (int i = 0; i < 50; ++i) {
    const std::string what = "lab.size" + std::to_string(i);
    EXPECT_EQ(a.pick(what, choices), b.pick(what, choices));
    EXPECT_EQ(a.between(what, 3, 1000), b.between(what, 3, 1000));
  }
}

TEST(Student, DrawsEvenly) {
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 3000; ++i) {
    ++counts[Student("student" + std::to_string(i)).between("rows", 1, 6)];
  }
  ASSERT_EQ(counts.size(), 6U);
  // Binomial with n 3000, p 1/6: mean 500, standard deviation 20.4; five of them.
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 500, 102) << value;
}

TEST(Student, StaysInsideTheRange) {
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    seen.insert(Student("s" + std::to_string(i)).between("x", -1, 1));
  }
  EXPECT_EQ(seen, (std::set<std::int64_t>{-1, 0, 1}));
}

TEST(Student, RefusesOddIds) {
  for (const std::string& id :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("ä"),
        std::string(65, 'a'), std::string("a\"b"), std::string("a\nb")}) {
    EXPECT_THROW(Student{id}, InputError) << id;
  }
  EXPECT_NO_THROW(Student{std::string(64, 'a')});
}

}  // namespace
}  // namespace fuseline::lab
