// Weights in every number format: each shipped block under every policy is legal, predicted at or
// above its limits, computed with equal bytes and the results of fp64. Some 5,000 plans: a test of
// the optimised build.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

// Every format; and groups that are shorter than the rows here and do not divide them.
std::vector<std::string> formats() {
  std::vector<std::string> names = weight_format_names();
  for (const char* grouped : {"int4:16", "int4-zero:10", "int8:14", "int4:0"})
    names.emplace_back(grouped);
  return names;
}

Plan planned(const std::string& policy, const Graph& block, const std::string& name) {
  const Target target = plan_target(executor::executor_gpu());
  return test::is_end(name) ? make_end_plan(policy, block, target)
                            : make_plan(policy, block, target);
}

class NumberFormats : public testing::TestWithParam<std::string> {};

TEST_P(NumberFormats, OfEveryShippedBlockAreProvedUnderEveryPolicy) {
  for (const bool other : {false, true}) {
    const ModelConfig c = test::sized(GetParam(), other);
    for (const std::string& name : formats()) {
      for (Workload work : {test::forward(2, 19), test::decode(3, 1, 23)}) {
        if (work.phase == Phase::decode && test::refuses_decode(GetParam())) continue;
        work.formats.weights = parse_stored_weight(name, "", "");
        const Graph block = build_block(c, work);
        for (const PolicyInfo& p : policies())
          test::expect_proved(planned(p.name, block, GetParam()),
                              p.name + ", " + name + ", " + name_of(work.phase));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NumberFormats, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline
