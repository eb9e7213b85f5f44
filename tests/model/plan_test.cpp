// check_plan refuses plans that were broken on purpose, one fault each.
#include "model/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Plan coda() { return make_plan("coda", test::tiny_llama(), test::forward(2, 5)); }

Kernel& kernel(Plan& plan, const std::string& name) {
  return *std::ranges::find(plan.kernels, name, &Kernel::name);
}

TEST(CheckPlan, AcceptsAPlanAsMade) { EXPECT_THAT(check_plan(coda()), IsEmpty()); }

TEST(CheckPlan, FindsAnOperatorInNoKernelAndInTwo) {
  Plan plan = coda();
  plan.kernels[1].ops.push_back(plan.kernels[3].ops.back());
  plan.kernels[4].ops.clear();
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("is in 2 kernels")));
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("operator finish_norm2 is in 0 kernels")));
}

TEST(CheckPlan, FindsKernelsAgainstTheDependencies) {
  Plan plan = coda();
  std::swap(plan.kernels[2], plan.kernels[3]);
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("oproj loads attn before it is stored")));
}

TEST(CheckPlan, FindsAnOnChipTensorThatAnotherKernelLoads) {
  Plan plan = coda();
  plan.homes[static_cast<std::size_t>(plan.graph.find_tensor("attn")->index)] = Home::on_chip;
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("oproj loads attn, which stays on chip")));
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("attention stores attn, which stays on chip")));
}

TEST(CheckPlan, FindsColumnsThatNobodyStored) {
  // Given V's columns of qkv are stored, when that store is dropped, then attention misses them.
  Plan plan = coda();
  auto& body = kernel(plan, "qkv").phases[0].body;
  std::erase_if(body, [&](const Primitive& p) {
    const auto* store = p.as<StoreTile>();
    return store != nullptr && plan.graph.tensor(store->to.tensor).name == "qkv";
  });
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("attention loads qkv before it is stored")));
}

TEST(CheckPlan, FindsPartialsWithoutFinisherAndFinishedTwice) {
  Plan without = coda();
  without.kernels.erase(without.kernels.begin() + 4);
  EXPECT_THAT(check_plan(without), Contains(HasSubstr("partials s_norm2 have 0 finishers")));

  Plan twice = coda();
  Kernel again = twice.kernels[4];
  again.name = "again";
  twice.kernels.insert(twice.kernels.begin() + 5, again);
  EXPECT_THAT(check_plan(twice), Contains(HasSubstr("partials s_norm2 have 2 finishers")));
}

TEST(CheckPlan, FindsAnOutputThatIsNotStored) {
  Plan plan = coda();
  std::erase_if(kernel(plan, "down").phases[0].body,
                [](const Primitive& p) { return p.is<StoreTile>(); });
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("output y is not stored")));
}

TEST(CheckPlan, FindsTwoKernelsOfOneName) {
  Plan plan = coda();
  plan.kernels[1].name = plan.kernels[0].name;
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("two kernels are named finish_norm1")));
}

TEST(CheckPlan, FindsKernelsWithoutProgramAndTensorsWithoutHome) {
  Plan plan = coda();
  plan.kernels[0].phases.clear();
  plan.homes.pop_back();
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("finish_norm1 has no program")));
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("not every tensor has a home")));
}

TEST(CheckPlan, ReportsProblemsOfThePrograms) {
  Plan plan = coda();
  std::get<GemmMainloop>(kernel(plan, "gate_up").phases[0].mainloop).interleaved = false;
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("gate_up: adjacent columns are no pairs")));
}

}  // namespace
}  // namespace fuseline
