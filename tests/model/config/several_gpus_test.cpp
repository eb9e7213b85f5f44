#include "model/config/several_gpus.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

const std::vector<std::string> kKnown = {"h100", "h200", "rtx3090", "a100-sxm-80gb"};

TEST(CountedGpu, IsTheGpuThatTheTextCounts) {
  for (const char* text : {"8xh100", "8 x h100", "8X h100", "8*h100", "8×h100", "2xh100", "h100x8",
                           "h100 x 8", "h100*8", "1xh100"}) {
    EXPECT_EQ(counted_gpu(text, kKnown), "h100") << text;
  }
  EXPECT_EQ(counted_gpu("a100-sxm-80gbx4", kKnown), "a100-sxm-80gb");
  EXPECT_EQ(counted_gpu("8xb300", kKnown), "b300");  // which nobody knows
}

TEST(CountedGpu, IsNothingWhereNothingIsCounted) {
  for (const char* text : {"h100", "rtx3090", "rtx3080", "", "8", "8x", "x8", "h100x", "h100-8",
                           "8h100", "h100x8gb", "hx100"}) {
    EXPECT_EQ(counted_gpu(text, kKnown), std::nullopt) << text;
  }
}

TEST(AsksForSeveralGpus, InAnySpellingOfTheUsualWords) {
  for (const char* word : {"--gpus", "gpus", "--tp", "tp", "--tensor-parallel-size",
                           "tensor_parallel_size", "--num-gpus", "num_gpus", "--nnodes"}) {
    EXPECT_TRUE(asks_for_several_gpus(word)) << word;
  }
  for (const char* word : {"--gpu", "gpu", "--type", "--t", "", "--", "--modle"}) {
    EXPECT_FALSE(asks_for_several_gpus(word)) << word;
  }
}

}  // namespace
}  // namespace fuseline
