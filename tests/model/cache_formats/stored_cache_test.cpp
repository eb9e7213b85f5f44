// Number formats of caches: their words, and what stands beside the codes.
#include "model/cache_formats/stored_cache.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/cache_formats/cache_format.h"

namespace fuseline {
namespace {

InputProblem cache_problem(const std::string& text) {
  try {
    static_cast<void>(parse_stored_cache(text, "--kv", "bf16"));
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << text << " was taken";
  return {};
}

TEST(StoredCache, IsReadAndNamedInTheSameWords) {
  for (const std::string& name : cache_format_names()) {
    const StoredCache cache = parse_stored_cache(name, "", "bf16");
    EXPECT_TRUE(cache.quantised());
    EXPECT_EQ(cache.name(), name);
    EXPECT_LE(size_of(cache.element()).bits(), 8);
  }
  EXPECT_FALSE(parse_stored_cache("fp16", "", "fp16").quantised());
  EXPECT_EQ(StoredCache{}.name(), "");
  EXPECT_FALSE(StoredCache{}.scaled());
}

// fp8 has one number for the tensor, which no kernel loads; int8 has one a head and token.
TEST(StoredCache, SaysWhatStandsBesideIt) {
  const StoredCache fp8 = parse_stored_cache("fp8", "", "");
  EXPECT_EQ(fp8.element(), Dtype::e4m3);
  EXPECT_FALSE(fp8.scaled());
  EXPECT_EQ(fp8.largest(), 448);
  const StoredCache int8 = parse_stored_cache("int8", "", "");
  EXPECT_EQ(int8.element(), Dtype::int8);
  EXPECT_TRUE(int8.scaled());
  EXPECT_EQ(int8.scale_type(), Dtype::fp32);
  EXPECT_EQ(int8.largest(), 127);
}

TEST(StoredCache, RefusesOtherWords) {
  const InputProblem near = cache_problem("int9");
  EXPECT_EQ(near.field, "--kv");
  EXPECT_EQ(near.value, "int9");
  EXPECT_EQ(near.allowed, "bf16, fp8, int8");
  EXPECT_EQ(near.nearest, "int8");
  EXPECT_EQ(cache_problem("int8:64").value, "int8:64");
  EXPECT_EQ(cache_problem("").allowed, "bf16, fp8, int8");
}

}  // namespace
}  // namespace fuseline
