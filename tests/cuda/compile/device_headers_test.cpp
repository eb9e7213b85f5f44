#include "cuda/compile/device_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(DeviceHeaders, EveryHeaderJoinsWithoutIncludesOfOurOwn) {
  ASSERT_GT(device_headers().size(), 10U);
  for (const DeviceHeader& header : device_headers()) {
    const std::string text = join_headers(std::string(header.path), header.text);
    EXPECT_EQ(count_of(text, "#include \""), 0U) << header.path;
    EXPECT_EQ(count_of(text, "#pragma once"), 0U) << header.path;
  }
}

TEST(DeviceHeaders, AHeaderIncludedTwiceIsThereOnce) {
  const std::string text =
      join_headers("twice.cu", "#include \"element.cuh\"\n#include \"epilogue/map.cuh\"\nint x;\n");
  EXPECT_EQ(count_of(text, "using bf16 = "), 1U);
  EXPECT_THAT(text, HasSubstr("#line 3 \"twice.cu\"\nint x;\n"));
}

TEST(DeviceHeaders, AMissingHeaderIsABug) {
  EXPECT_THROW((void)join_headers("x.cu", "#include \"no_such.cuh\"\n"), InternalError);
}

}  // namespace
}  // namespace fuseline::cuda
