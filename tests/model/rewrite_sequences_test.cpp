#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

// Whatever the order, a rewrite applies or says that it does not: no sequence of three is a bug of
// ours.
TEST(RewriteSequences, AreMadeOrRefused) {
  const std::vector<std::string> names = rewrite_names();
  const Graph graphs[] = {build_block(test::tiny_llama(), test::forward(2, 5)),
                          build_block(test::tiny_llama(), test::train(2, 5))};
  int made = 0;
  for (const Graph& graph : graphs) {
    for (const std::string& first : names) {
      for (const std::string& second : names) {
        for (const std::string third : {"decompose_norm", "split_column_sums", "rotate_weighted"}) {
          try {
            EXPECT_THAT(check_plan(make_custom_plan(graph, {first, second, third}, {})),
                        testing::IsEmpty())
                << first << ", " << second << ", " << third;
            ++made;
          } catch (const InputError&) {
          } catch (const InternalError& bug) {
            ADD_FAILURE() << first << ", " << second << ", " << third << ": " << bug.what();
          }
        }
      }
    }
  }
  EXPECT_GT(made, 20);
}

}  // namespace
}  // namespace fuseline
