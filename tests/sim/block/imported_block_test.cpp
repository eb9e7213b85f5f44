// Blocks from saved graphs are predicted, executed and proved as those that we ship, and the layer
// of LLaMA moves the shipped block's bytes.
#include <gtest/gtest.h>

#include <string>

#include "base/data_files.h"
#include "model/backward.h"
#include "model/blocks/block_text.h"
#include "model/import/import_graph.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/plan_proof.h"

namespace fuseline {
namespace {

std::shared_ptr<const BlockText> imported(const std::string& name,
                                          const ImportOptions& options = {}) {
  const std::string path =
      std::string(FUSELINE_SOURCE_DIR) + "/tests/model/import/graphs/" + name + ".json";
  return BlockText::parse(import_graph(read_input_file(path), path, options).text, name);
}

class ImportedBlockProof : public testing::TestWithParam<const char*> {};

TEST_P(ImportedBlockProof, IsPredictedAndComputedUnderEveryPolicy) {
  for (const bool separate : {false, true}) {
    const auto text = imported(GetParam(), {.separate = separate});
    const Graph forward = build_graph(*text, {}, test::forward(2, 33));
    const Graph decode = build_graph(*text, {}, test::decode(2, 1, 19));
    const Graph train = differentiate(build_graph(*text, {}, test::train(1, 13)));
    const test::Proof of_forward(forward), of_decode(decode), of_train(train);
    for (const PolicyInfo& policy : policies()) {
      const std::string what =
          std::string(GetParam()) + " " + policy.name + (separate ? " separate" : "");
      of_forward.of(make_plan(policy.name, forward), what);
      of_decode.of(make_plan(policy.name, decode), what + " decode");
      if (policy.trains) of_train.of(make_plan(policy.name, train), what + " train");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImportedBlockProof,
                         testing::Values("llama", "qwen3", "gpt2", "gptj", "phi3"),
                         [](const auto& p) { return std::string(p.param); });

// Layers of real sizes, proved at small ones.
TEST(ImportedBlock, OfAMixtureAndOfHeadsInPartsIsProved) {
  const ParameterValues mixture{{"D", std::int64_t{40}}, {"F", std::int64_t{24}},
                                {"H", std::int64_t{4}},  {"Hkv", std::int64_t{2}},
                                {"d", std::int64_t{6}},  {"E", std::int64_t{5}},
                                {"k", std::int64_t{3}}};
  const ParameterValues heads{{"D", std::int64_t{40}},
                              {"F", std::int64_t{56}},
                              {"H", std::int64_t{4}},
                              {"d", std::int64_t{10}},
                              {"rotated", std::int64_t{4}}};
  for (const auto& [name, values] :
       {std::pair{"pytorch/mixtral", mixture}, {"pytorch/gpt_neox", heads}}) {
    const auto text = imported(name);
    for (const Workload& work : {test::forward(2, 33), test::decode(2, 1, 19)}) {
      const Graph block = build_graph(*text, values, work);
      const test::Proof proof(block);
      for (const PolicyInfo& policy : policies())
        proof.of(make_plan(policy.name, block),
                 std::string(name) + " " + policy.name + " " + name_of(work.phase));
    }
  }
}

TEST(ImportedBlock, MovesTheBytesOfTheShippedLlamaBlock) {
  const auto ours = load_block_text("llama");
  const auto theirs = imported("llama");
  ParameterValues sizes{{"D", std::int64_t{1024}},
                        {"F", std::int64_t{2752}},
                        {"H", std::int64_t{8}},
                        {"Hkv", std::int64_t{4}},
                        {"d", std::int64_t{128}}};
  const Gpu& gpu = executor::executor_gpu();
  for (const Workload& work : {test::forward(1, 300), test::decode(4, 1, 500)}) {
    for (const PolicyInfo& policy : policies()) {
      const PlanEstimate a = simulate(make_plan(policy.name, build_graph(*ours, sizes, work)), gpu,
                                      Fidelity::hierarchy);
      const PlanEstimate b = simulate(make_plan(policy.name, build_graph(*theirs, sizes, work)),
                                      gpu, Fidelity::hierarchy);
      ASSERT_EQ(a.kernels.size(), b.kernels.size()) << policy.name;
      EXPECT_EQ(a.time.value(), b.time.value()) << policy.name;
      for (std::size_t i = 0; i < a.kernels.size(); ++i) {
        EXPECT_EQ(a.kernels[i].name, b.kernels[i].name);
        EXPECT_EQ(a.kernels[i].hbm_read, b.kernels[i].hbm_read) << a.kernels[i].name;
        EXPECT_EQ(a.kernels[i].hbm_write, b.kernels[i].hbm_write) << a.kernels[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
