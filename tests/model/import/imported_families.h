// Layers as PyTorch exports them, each with the block that we ship for it: what is imported has the
// plans of that block.
#pragma once

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "model/backward.h"
#include "model/blocks/block_text.h"
#include "model/explain.h"
#include "model/import/import_graph.h"
#include "model/policy.h"
#include "tests/model/tiny_models.h"

namespace fuseline::test {

inline std::string exported_path(const std::string& name) {
  return std::string(FUSELINE_SOURCE_DIR) + "/tests/model/import/graphs/" + name + ".json";
}

inline ImportedBlock imported(const std::string& name, const ImportOptions& options = {}) {
  return import_graph(read_input_file(exported_path(name)), exported_path(name), options);
}

struct Family {
  std::string graph;
  std::string block;       // that we ship
  ParameterValues values;  // what our block is told that the graph says itself
  bool trains = true;      // gradients of capped scores are not built
  bool decodes = true;     // an encoder keeps no cache
};

// Kernels, programs, tensors and why operators are fused or not: all that can be said of a plan.
inline void expect_same_plans(const BlockText& a, const BlockText& b, const ParameterValues& values,
                              const Family& family, const std::vector<PolicyInfo>& under) {
  for (const Workload& work : {forward(2, 7), decode(3, 1, 9), train(1, 6)}) {
    const bool training = work.phase == Phase::train;
    if (training && !family.trains) continue;
    if (work.phase == Phase::decode && !family.decodes) continue;
    const auto in_phase = [&](const BlockText& text) {
      Graph graph = build_graph(text, values, work);
      return training ? differentiate(graph) : graph;
    };
    const Graph left = in_phase(a), right = in_phase(b);
    for (const PolicyInfo& policy : under) {
      if (training && !policy.trains) continue;
      ASSERT_EQ(explain_text(explain(make_plan(policy.name, left))),
                explain_text(explain(make_plan(policy.name, right))))
          << policy.name << ", " << describe(work);
    }
  }
}

inline void expect_plans_of_the_shipped_block(const Family& family,
                                              const std::vector<PolicyInfo>& under) {
  const ImportedBlock block = imported(family.graph);
  // Norms have numbers in what is imported, and other names in some of our blocks.
  std::string shipped = read_input_file(data_dir() / "blocks" / (family.block + ".block"));
  for (const auto& [name, numbered] : {std::pair("xn", "xn1"),
                                       {"on", "xn2"},
                                       {"dnn", "xn4"},
                                       {"hn", "xn1"},
                                       {"s", "h_2"},
                                       {"rows", "routed"},
                                       {"experts/expert_act", "act/swiglu"}})
    shipped = std::regex_replace(shipped, std::regex(fmt::format("\\b{}\\b", name)), numbered);
  const auto ours = BlockText::parse(shipped, family.block);
  const auto text = BlockText::parse(block.text, family.graph);
  ParameterValues values = default_values(*text);
  values.insert(family.values.begin(), family.values.end());
  expect_same_plans(*text, *ours, values, family, under);
  // Other sizes than the example's follow.
  values["D"] = std::int64_t{20};
  values["d"] = std::int64_t{6};
  values["F"] = std::int64_t{22};
  if (values.contains("rotated")) values["rotated"] = std::int64_t{4};
  expect_same_plans(*text, *ours, values, family, under);
}

inline std::string family_name(const testing::TestParamInfo<Family>& p) {
  std::string name = p.param.graph;
  for (char& c : name)
    if (c == '.' || c == '/') c = '_';
  return name;
}

inline std::vector<Family> imported_families() {
  const ParameterValues biases{{"qkv_bias", true}, {"out_bias", true}, {"mlp_bias", true}};
  const ParameterValues neox{
      {"exact_gelu", true}, {"qkv_bias", true}, {"out_bias", true}, {"mlp_bias", true}};
  const ParameterValues gptj{{"adjacent_pairs", true}, {"mlp_bias", true}};
  return {{"llama", "llama", {}},
          {"llama.program", "llama", {}},
          {"llama_eager_masked", "llama", {}},
          {"phi3", "llama", {}},
          {"qwen3", "qwen3", {}},
          {"gpt2", "gpt", biases},
          {"gpt2.program", "gpt", biases},
          {"gemma2", "gemma2", {{"softcap", 50.0}, {"score_scale", 0.125}}},
          {"gptj", "parallel", gptj},
          // PyTorch 2.11 wrote these from layers of transformers 5.17 with real sizes; "eager" is
          // attention written out.
          {"pytorch/llama", "llama", {}},
          {"pytorch/llama.program", "llama", {}},
          {"pytorch/llama_eager", "llama", {}},
          {"pytorch/llama3", "llama", {}},
          {"pytorch/mistral", "llama", {}},
          {"pytorch/phi3", "llama", {}},
          {"pytorch/qwen2", "llama", {{"qkv_bias", true}}},
          {"pytorch/qwen3", "qwen3", {}},
          {"pytorch/gpt2", "gpt", biases},
          {"pytorch/gpt2_eager", "gpt", biases},
          {"pytorch/gemma2", "gemma2", {}},
          {"pytorch/gemma2_eager", "gemma2", {{"softcap", 50.0}}},
          {"pytorch/gemma3", "gemma3", {}},
          {"pytorch/glm4", "glm4", {{"qkv_bias", true}}},
          {"pytorch/gpt_neox", "neox", neox},
          {"pytorch/mixtral", "moe", {}},
          {"pytorch/gptj_eager", "parallel", gptj},
          {"pytorch/bert", "bert", {}, true, false}};
}

}  // namespace fuseline::test
