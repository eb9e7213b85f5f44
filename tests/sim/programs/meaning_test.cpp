// The meaning of programs in fp64, without tiles, held against the fp64 reference of the operators
// that they were lowered from: the text of a plan says the same as its block. Nothing is rounded on
// either side, so that a wrong term shows in the first digits.
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "model/policy.h"
#include "model/prepare.h"
#include "model/programs/meaning.h"
#include "model/reference.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/executor/executor_support.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

// Sums of fp64 in another order, and scores of e^20.
constexpr double kAllowed = 1e-9;

// What plans of one block are held against, made once for all of them.
struct BlockMeaning {
  // Not rounded to storage types: the backward pass turns back what the forward pass turned, which
  // gives the same numbers only where cos² + sin² = 1.
  explicit BlockMeaning(const Graph& block)
      : values(random_inputs(block, 5)), want(run_reference(block, values)) {}
  NamedTensors values;
  TensorValues want;
};

void expect_same_meaning(const Plan& plan, const BlockMeaning& block, const std::string& what) {
  const auto& [values, want] = block;
  const NamedTensors prepared = prepare(plan.preparation, plan.graph, values);
  const NamedTensors others = random_inputs(plan.graph, 5);
  ExactTensors exact;
  for (const Tensor& t : plan.graph.tensors()) {
    exact.emplace_back(static_cast<std::size_t>(t.rows * t.cols));
    for (const NamedTensors* given : {&prepared, &others})
      if (const auto found = given->find(t.name); found != given->end()) {
        exact.back() = found->second;
        break;
      }
  }
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) run_meaning(plan.graph, p, exact);
  NamedTensors got;
  for (const Tensor& t : plan.block.tensors())
    if (t.role == Role::output)
      got[t.name] = exact.at(static_cast<std::size_t>(plan.graph.find_tensor(t.name)->index));
  for (const auto& [name, result] : restore(plan.preparation, plan.graph, got))
    EXPECT_EQ(disagreement(result, want.at(name), kAllowed), "") << name << ' ' << what;
}

class ProgramMeaning : public testing::TestWithParam<std::string> {};

TEST_P(ProgramMeaning, IsThatOfTheBlockUnderEveryPolicy) {
  const Target target = plan_target(executor::executor_gpu());
  const ModelConfig c = test::sized(GetParam(), false);
  for (const Workload& work : {test::forward(2, 19), test::decode(3, 1, 23), test::train(2, 11)}) {
    if (work.phase == Phase::decode && test::refuses_decode(GetParam())) continue;
    const Graph block = build_block(c, work);
    const BlockMeaning meaning(block);
    for (const PolicyInfo& p : policies()) {
      if (work.phase == Phase::train && !p.trains) continue;
      expect_same_meaning(test::is_end(GetParam()) ? make_end_plan(p.name, block, target)
                                                   : make_plan(p.name, block, target),
                          meaning, p.name + ", " + name_of(work.phase));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProgramMeaning, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline
