#include "lab/student.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/error.h"

namespace fuseline::lab {
namespace {

// FNV-1a 64 of "" and "a" (from its authors' test vectors: cbf29ce484222325, af63dc4c8601ec8c) put
// through splitmix64's finalizer, worked out with big integers. They are the same on every machine.
TEST(Student, HashesAsFixedForever) {
  EXPECT_EQ(stable_hash(""), 0xf52a15e9a9b5e89bU);
  EXPECT_EQ(stable_hash("a"), 0x2c0bdbf481420f8U);
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
