// In which order short rows are loaded and stored.
#include <gtest/gtest.h>

#include <string>

#include "cuda/emit/stream_source.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

// The sums down columns of a whole block are added up in one loop. Behind a store a load would
// wait: the compiler cannot know that they are of different tensors.
TEST(StreamLoads, OfShortRowsComeBeforeTheFirstStore) {
  const Plan plan = make_plan("coda", load_model("gpt2-xl"), fuseline::test::train(1, 904));
  const Kernel* kernel = fuseline::test::find_kernel(plan, "finish_column_sums");
  ASSERT_NE(kernel, nullptr);
  const std::string text =
      stream_kernel_source(plan.graph, kernel->phases.at(0), "A test.").source.text;
  const auto last_load = text.rfind("= load_tile("), first_store = text.find("store_rows(p.");
  ASSERT_NE(last_load, std::string::npos);
  ASSERT_NE(first_store, std::string::npos);
  EXPECT_LT(last_load, first_store);
}

}  // namespace
}  // namespace fuseline::cuda
