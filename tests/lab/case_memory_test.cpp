#include "lab/case_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace fuseline::lab {
namespace {

using fuseline_lab::Ask;
using fuseline_lab::Greeting;
using fuseline_lab::Request;
using ::testing::HasSubstr;

constexpr std::uint64_t kNonce = 0x1234567890abcdef;

FunctionCase two_by_three() {
  FunctionCase c;
  c.name = "2 x 3";
  c.numbers = {{"eps", 0.5}};
  c.matrices = {{"x", 2, 3, false, {1, 2, 3, 4, 5, 6}, 0, 6}, {"y", 2, 3, true, {}, 0, 6}};
  c.mainloop = {3, 3, 2, {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  return c;
}

std::string bytes(const Request& r) { return {reinterpret_cast<const char*>(&r), sizeof r}; }

std::vector<float> floats(const std::string& reply) {
  std::vector<float> out(reply.size() / sizeof(float));
  std::memcpy(out.data(), reply.data(), out.size() * sizeof(float));
  return out;
}

TEST(CaseMemory, GreetsWithShapesAndNumbersAndNoValue) {
  const FunctionCase c = two_by_three();
  const std::string text = CaseMemory(c, kNonce).greeting();
  Greeting g;
  ASSERT_EQ(text.size(), sizeof g);
  std::memcpy(&g, text.data(), sizeof g);
  EXPECT_EQ(g.nonce, kNonce);
  ASSERT_EQ(g.matrix_count, 2U);
  EXPECT_STREQ(g.matrices[0].name, "x");
  EXPECT_EQ(g.matrices[1].cols, 3);
  ASSERT_EQ(g.number_count, 1U);
  EXPECT_EQ(g.numbers[0].value, 0.5);
}

TEST(CaseMemory, ServesAndCounts) {
  const FunctionCase c = two_by_three();
  CaseMemory memory(c, kNonce);
  std::string reply;
  EXPECT_TRUE(memory.take(bytes({Ask::ready}) + bytes({Ask::load, 0, 1, 2}), reply));
  EXPECT_TRUE(
      memory.take(bytes({Ask::load, 0, 1, 2}) + bytes({Ask::store, 1, 0, 1, 1.00390625F}), reply));
  EXPECT_EQ(floats(reply), (std::vector<float>{6, 6}));
  EXPECT_EQ(memory.counts().at("x").loads, 2);
  EXPECT_EQ(memory.counts().at("y").stores, 1);
  EXPECT_EQ(memory.targets().at("y")[1], 1.0);  // rounded to bf16
  EXPECT_FALSE(memory.is_done());
  EXPECT_TRUE(memory.take(bytes({Ask::done, 0, 100, static_cast<std::int64_t>(kNonce)}), reply));
  EXPECT_TRUE(memory.is_done());
  EXPECT_EQ(memory.on_chip(), Bytes(100));
}

TEST(CaseMemory, PutsCutRequestsTogether) {
  const FunctionCase c = two_by_three();
  CaseMemory memory(c, kNonce);
  std::string reply;
  for (const char byte : bytes({Ask::load, 0, 0, 1}) + bytes({Ask::load, 0, 0, 2})) {
    EXPECT_TRUE(memory.take({&byte, 1}, reply));
  }
  EXPECT_EQ(floats(reply), (std::vector<float>{2, 3}));
}

TEST(CaseMemory, HandsOutTilesCutAtTheEdges) {
  const FunctionCase c = two_by_three();
  CaseMemory memory(c, kNonce);
  std::string reply;
  EXPECT_TRUE(memory.take(bytes({Ask::tile, 0, 0, 2}) + bytes({Ask::tile, 0, 2, 0}), reply));
  EXPECT_EQ(floats(reply), (std::vector<float>{2, 5, 6, 7}));
}

TEST(CaseMemory, RefusesWhatNoHarnessAsks) {
  const FunctionCase c = two_by_three();
  const std::int64_t far = std::int64_t{1} << 62;
  const struct {
    Request request;
    const char* problem;
  } cases[] = {{{Ask::load, 0, 2, 0}, "load outside the matrix: row 2, column 0 of x [2, 3]"},
               {{Ask::load, 0, -1, 0}, "row -1"},
               {{Ask::store, 1, 0, far}, "store outside the matrix"},
               {{Ask::load, 1, 0, 0}, "which is a target"},
               {{Ask::store, 0, 0, 0}, "which is a source"},
               {{Ask::load, 2, 0, 0}, "in place of the check"},
               {{static_cast<Ask>(77), 0, 0, 0}, "in place of the check"},
               {{Ask::tile, 0, 3, 0}, "in place of the check"},
               {{Ask::tile, 0, -1, 0}, "in place of the check"},
               {{Ask::done, 0, 0, 7}, "said itself"},
               {{Ask::done, 0, -5, static_cast<std::int64_t>(kNonce)}, "said itself"}};
  for (const auto& wrong : cases) {
    CaseMemory memory(c, kNonce);
    std::string reply;
    EXPECT_FALSE(memory.take(bytes(wrong.request), reply)) << wrong.problem;
    EXPECT_THAT(memory.problem(), HasSubstr(wrong.problem));
    EXPECT_FALSE(memory.is_done());
    EXPECT_EQ(reply, "");
  }
}

}  // namespace
}  // namespace fuseline::lab
