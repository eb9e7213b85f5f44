#include "cuda/vendor/vendor_gemm.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/vendor/toolkit_library.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "model/primitives/functions.h"
#include "tests/model/plan_support.h"
#include "tests/model/primitive_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

using testing::Contains;
using testing::EndsWith;

// Programs of the GEMMs that the plan leaves to the library.
std::vector<const Program*> library_gemms(const Plan& plan) {
  std::vector<const Program*> programs;
  for (const Kernel& kernel : plan.kernels)
    if (kernel.implementation == Implementation::library_gemm)
      for (const Program& program : kernel.phases) programs.push_back(&program);
  return programs;
}

const Program& phase(const Plan& plan, const std::string& kernel) {
  return test::find_kernel(plan, kernel)->phases.front();
}

ModelConfig one_head_per_query() {
  ModelConfig c = test::tiny_llama();
  c.Hkv = c.H;
  return c;
}

TEST(VendorGemms, LibraryGemmsOfEveryPolicyAreOneCall) {
  std::set<std::string> checked;
  std::set<std::string> refused;
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == "custom") continue;
    for (const ModelConfig& config : {one_head_per_query(), test::tiny_gpt()}) {
      for (const Workload& work :
           {test::forward(2, 9), test::decode(2, 1, 12), test::train(2, 9)}) {
        if (work.phase == Phase::train && !policy.trains) continue;
        const Plan plan = make_plan(policy.name, build_block(config, work));
        for (const Program* program : library_gemms(plan)) {
          if (!supports(plan.graph, *program)) refused.insert(policy.name + " " + program->name);
          checked.insert(policy.name);
        }
      }
    }
  }
  EXPECT_GE(checked.size(), 8U);
  // A bias in bf16 for a result in fp32 would be refused, since the library wants one type.
  EXPECT_THAT(refused, testing::IsEmpty());
}

TEST(VendorGemms, SumsOverHeadsThatShareAKeyAreNot) {
  const Plan plan = make_plan("unfused", build_block(test::tiny_llama(), test::train(2, 9)));
  std::vector<std::string> refused;
  for (const Program* program : library_gemms(plan))
    if (!supports(plan.graph, *program)) refused.push_back(program->name);
  EXPECT_THAT(refused, testing::UnorderedElementsAre("d_k", "d_v"));
}

// Experts have unlike numbers of rows: along M, and along K in the gradients of their weights. A
// batch of equal products took the place of the latter, with rows of other experts.
TEST(VendorGemms, ProductsOfExpertsAreNot) {
  const Plan plan = make_plan("torch-compile", test::small_experts(), test::train(2, 9));
  std::vector<std::string> refused;
  for (const Program* program : library_gemms(plan))
    if (!supports(plan.graph, *program)) refused.push_back(program->name);
  EXPECT_THAT(refused, testing::IsSupersetOf({"expert_gate_up", "expert_down", "dw_expert_gate_up",
                                              "dw_expert_down", "d_expert_gate_up"}));
}

TEST(VendorGemms, OwnEpiloguesAreNot) {
  const Plan plan = make_plan("coda", build_block(test::tiny_llama(), test::forward(2, 9)));
  int own = 0;
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.implementation != Implementation::epilogue_gemm) continue;
    EXPECT_FALSE(supports(plan.graph, kernel.phases.front())) << kernel.name;
    ++own;
  }
  EXPECT_GE(own, 3);
}

TEST(VendorGemms, BiasAndGeluBecomeTheLibrarysEpilogue) {
  const Plan plan = make_plan("tensorrt-llm", build_block(test::tiny_gpt(), test::forward(2, 9)));
  const auto up = vendor_gemm(plan.graph, phase(plan, "up"));
  ASSERT_TRUE(up.has_value());
  EXPECT_TRUE(up->gelu);
  ASSERT_TRUE(up->bias.has_value());
  EXPECT_EQ(plan.graph.tensor(up->bias->tensor).name, "b_up");
  EXPECT_EQ(plan.graph.tensor(up->out.tensor).name, "act");
  EXPECT_FALSE(up->before_gelu.has_value());
  const auto down = vendor_gemm(plan.graph, phase(plan, "down"));
  EXPECT_FALSE(down.value().gelu);
  EXPECT_TRUE(down.value().bias.has_value());
}

TEST(VendorGemms, GelusInputIsStoredBesideItsResult) {
  const Plan plan = make_plan("xla", build_block(test::tiny_gpt(), test::train(2, 9)));
  const auto up = vendor_gemm(plan.graph, phase(plan, "up"));
  ASSERT_TRUE(up.has_value());
  ASSERT_TRUE(up->before_gelu.has_value());
  EXPECT_EQ(plan.graph.tensor(up->before_gelu->tensor).name, "up");
  EXPECT_EQ(plan.graph.tensor(up->out.tensor).name, "act");
}

TEST(VendorGemms, ScoresAreScaled) {
  const Plan plan = make_plan("unfused", build_block(test::tiny_gpt(), test::forward(2, 9)));
  const auto scores = vendor_gemm(plan.graph, phase(plan, "scores"));
  EXPECT_NEAR(scores.value().scale, 1 / std::sqrt(static_cast<double>(test::tiny_gpt().d)), 1e-12);
}

// A program with one change at a time of one that the library can do.
class ChangedGemm : public testing::Test {
 protected:
  bool after(const std::function<void(Program&)>& change) {
    Program program = phase(plan_, "up");
    change(program);
    return supports(plan_.graph, program);
  }
  Plan plan_ = make_plan("tensorrt-llm", build_block(test::tiny_gpt(), test::forward(2, 9)));
};

TEST_F(ChangedGemm, OrderOfTheEpilogueMatters) {
  ASSERT_TRUE(after([](Program&) {}));
  // GELU before the bias.
  EXPECT_FALSE(after([](Program& p) {
    Map bias = *p.body.at(1).as<Map>();
    Map gelu = *p.body.at(2).as<Map>();
    std::swap(bias.fn, gelu.fn);
    std::swap(bias.in, gelu.in);
    gelu.in = {bias.out, p.body.at(0).as<LoadVector>()->out};
    bias.in = {0};
    p.body.at(1) = bias;
    p.body.at(2) = gelu;
  }));
}

TEST_F(ChangedGemm, OtherFunctionsAreOurs) {
  EXPECT_FALSE(after([](Program& p) {
    fuseline::test::change<Map>(p.body.at(2), [](Map& map) { map.fn = maps::silu; });
  }));
  EXPECT_FALSE(after([](Program& p) {
    fuseline::test::change<Map>(p.body.at(1), [](Map& map) { map.fn = maps::mul; });
  }));
}

TEST_F(ChangedGemm, VectorsAlongRowsAreOurs) {
  EXPECT_FALSE(after([](Program& p) {
    fuseline::test::change<LoadVector>(p.body.at(0),
                                       [](LoadVector& load) { load.axis = Axis::rows; });
  }));
}

TEST_F(ChangedGemm, AddingToTheResultOfGeluIsOurs) {
  EXPECT_FALSE(after([](Program& p) {
    fuseline::test::change<StoreTile>(p.body.at(3),
                                      [](StoreTile& store) { store.accumulate = true; });
  }));
}

TEST_F(ChangedGemm, OfTwoResultsOnlyGelusInputIsTheLibrarys) {
  EXPECT_FALSE(after([](Program& p) { p.body.push_back(p.body.back()); }));
  EXPECT_FALSE(after([](Program& p) { p.body.pop_back(); }));
}

TEST(ToolkitLibraries, EndWithTheLoadersOwnSearch) {
  const auto names = toolkit_library("cublasLt", {"13", "12"});
  EXPECT_THAT(names, Contains("libcublasLt.so.13"));
  EXPECT_THAT(names, Contains("libcublasLt.so.12"));
  EXPECT_EQ(names.back(), "libcublasLt.so");
  for (const std::string& name : toolkit_library("no-such-library", {"1"}))
    EXPECT_EQ(name.find('/'), std::string::npos) << name;
}

TEST(ToolkitLibraries, LookInTheToolkitThatTheUserNames) {
  const std::string root = testing::TempDir() + "fuseline-toolkit";
  const std::string folder = root + "/extras/CUPTI/lib64";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libcupti.so.12") << "";
  const char* before = std::getenv("CUDA_HOME");
  const std::string old = before == nullptr ? "" : before;
  setenv("CUDA_HOME", root.c_str(), 1);
  const auto names = toolkit_library("cupti", {"13", "12"});
  if (before == nullptr) {
    unsetenv("CUDA_HOME");
  } else {
    setenv("CUDA_HOME", old.c_str(), 1);
  }
  EXPECT_THAT(names.front(), EndsWith("extras/CUPTI/lib64/libcupti.so.12"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace fuseline::cuda
