// Published config.json files give the models that we ship: the same layers, with the same
// operators and weights. What other files of these architectures may say is read or refused by
// name.
#include <gtest/gtest.h>

#include <tuple>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/config/hf_config.h"
#include "model/config/model_files.h"
#include "model/explain.h"
#include "model/policy.h"
#include "tests/model/config/published_configs.h"

namespace fuseline {
namespace {

ModelConfig read(const std::string& text) { return parse_hf_config(text, "dir/config.json"); }

std::string with(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), replacement);
}

std::string text_of(const std::string& model) {
  for (const Published& p : kPublished)
    if (p.model == model) return p.text;
  ADD_FAILURE() << model;
  return {};
}

std::string refused_field(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.problem().field;
  }
  return "";
}

class PublishedConfig : public testing::TestWithParam<Published> {};

TEST_P(PublishedConfig, IsTheShippedModel) {
  const ModelConfig c = read(GetParam().text);
  const ModelConfig shipped = load_model(GetParam().model);
  EXPECT_EQ(std::tie(c.layers, c.D, c.F, c.H, c.Hkv, c.d, c.V, c.max_positions, c.norm_eps),
            std::tie(shipped.layers, shipped.D, shipped.F, shipped.H, shipped.Hkv, shipped.d,
                     shipped.V, shipped.max_positions, shipped.norm_eps));
  EXPECT_EQ(c.rope_theta, shipped.rope_theta);
  EXPECT_EQ(c.tied_embeddings, shipped.tied_embeddings);
  EXPECT_EQ(c.entry, shipped.entry);
  EXPECT_EQ(c.exit, shipped.exit);
  ASSERT_EQ(c.blocks.size(), shipped.blocks.size());
  const Workload work{.batch = 2, .seq = 24};
  for (const auto& [end, other] :
       {std::pair{&c.entry, &shipped.entry}, std::pair{&c.exit, &shipped.exit}})
    if (!end->empty())
      EXPECT_EQ(explain_text(explain(make_plan("unfused", build_end(c, *end, work)))),
                explain_text(explain(make_plan("unfused", build_end(shipped, *other, work)))));
  for (std::size_t i = 0; i < c.blocks.size(); ++i) {
    EXPECT_EQ(c.blocks[i].label(), shipped.blocks[i].label());
    EXPECT_EQ(c.layers_of(c.blocks[i]), shipped.layers_of(shipped.blocks[i]));
    const Graph a = build_block(c, c.blocks[i], work);
    const Graph b = build_block(shipped, shipped.blocks[i], work);
    EXPECT_EQ(explain_text(explain(make_plan("unfused", a))),
              explain_text(explain(make_plan("unfused", b))));
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (std::size_t n = 0; n < a.tensors().size(); ++n)
      EXPECT_EQ(std::tie(a.tensors()[n].name, a.tensors()[n].rows, a.tensors()[n].cols),
                std::tie(b.tensors()[n].name, b.tensors()[n].rows, b.tensors()[n].cols));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedConfig, testing::ValuesIn(kPublished), [](const auto& p) {
  std::string name = p.param.model;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
});

TEST(HfFamilies, Gemma2LayersTakeTurnsOrAreSaidOneByOne) {
  std::string text =
      with(text_of("gemma2-9b"), R"("num_hidden_layers": 42)", R"("num_hidden_layers": 3)");
  ModelConfig c = read(text);
  ASSERT_EQ(c.blocks.size(), 2U);
  EXPECT_EQ(c.layers_of(c.blocks[0]), 2);  // the first slides, and the third
  text = with(text, "{", R"({"layer_types": ["full_attention", "full_attention",
    "sliding_attention"], )");
  c = read(text);
  EXPECT_EQ(c.layers_of(c.blocks[0]), 1);
  EXPECT_EQ(c.blocks[0].values.at("sliding_window"), ParameterValue(std::int64_t{4096}));
  EXPECT_EQ(c.layers_of(c.blocks[1]), 2);
}

// Pythia-2.8B: its count of parameters is published with it (2,775,208,960).
TEST(HfFamilies, GptNeoXHasTwoNormsSideBySideOrOneAfterTheOther) {
  const std::string pythia = R"({"architectures": ["GPTNeoXForCausalLM"], "hidden_act": "gelu",
    "hidden_size": 2560, "intermediate_size": 10240, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 32,
    "num_hidden_layers": 32, "rotary_emb_base": 10000, "rotary_pct": 0.25,
    "tie_word_embeddings": false, "torch_dtype": "float16", "use_parallel_residual": true,
    "vocab_size": 50304})";
  const ModelConfig c = read(pythia);
  std::int64_t parameters = 0;
  const auto count = [&](const Graph& graph, std::int64_t times) {
    for (const Tensor& t : graph.tensors())
      if (t.role == Role::weight) parameters += times * t.rows * t.cols;
  };
  const Workload one{.seq = 1};
  count(build_block(c, one), c.layers);
  count(build_entry(c, one), 1);
  count(build_exit(c, one), 1);
  EXPECT_EQ(parameters, 2'775'208'960);
  EXPECT_EQ(c.values.at("rotated"), ParameterValue(std::int64_t{20}));
  const auto norm_reads_stream = [&](const ModelConfig& config) {
    const Graph graph = build_block(config, Workload{.batch = 1, .seq = 8});
    const Op& norm = graph.op(*graph.find_op("norm2"));
    return graph.tensor(norm.reads[0].tensor).name == "x";
  };
  EXPECT_TRUE(norm_reads_stream(c));
  EXPECT_FALSE(norm_reads_stream(
      read(with(pythia, R"("use_parallel_residual": true)", R"("use_parallel_residual": false)"))));
  EXPECT_FALSE(read(with(pythia, "{", R"({"attention_bias": false, )")).qkv_bias);
  // As newer files write it.
  EXPECT_EQ(read(with(with(pythia, R"("rotary_emb_base": 10000, "rotary_pct": 0.25,)", ""), "{",
                      R"({"rope_parameters": {"rope_type": "default", "rope_theta": 25000.0,
                          "partial_rotary_factor": 0.5}, )"))
                .values.at("rotated"),
            ParameterValue(std::int64_t{40}));
  EXPECT_EQ(refused_field(with(pythia, R"("rotary_pct": 0.25)", R"("rotary_pct": 0.01)")),
            "rotary_pct");
  EXPECT_EQ(refused_field(with(pythia, R"("hidden_act": "gelu")", R"("hidden_act": "relu")")),
            "hidden_act");
}

TEST(HfFamilies, Gemma3LeavesOutWhatATurnDoesNotFill) {
  const ModelConfig c =
      read(with(text_of("gemma3"), R"("num_hidden_layers": 48)", R"("num_hidden_layers": 26)"));
  EXPECT_EQ(c.layers_of(c.blocks[0]), 22);
  EXPECT_EQ(c.layers_of(c.blocks[1]), 4);
  const ModelConfig scaled = read(with(text_of("gemma3"), R"("query_pre_attn_scalar": 256)",
                                       R"("query_pre_attn_scalar": 168)"));
  EXPECT_NEAR(std::get<double>(scaled.values.at("score_scale")), 0.0771517, 1e-6);
}

TEST(HfFamilies, FalconWithoutMultiQueryHasAllHeads) {
  EXPECT_EQ(
      read(with(text_of("falcon-7b"), R"("multi_query": true)", R"("multi_query": false)")).Hkv,
      71);
  EXPECT_TRUE(read(with(text_of("falcon-7b"), R"("bias": false)", R"("bias": true)")).qkv_bias);
}

TEST(HfFamilies, Glm4TurnsThePartThatTheFileSays) {
  const auto rotated = [](const std::string& text) {
    return std::get<std::int64_t>(read(text).values.at("rotated"));
  };
  const std::string text = text_of("glm4");
  EXPECT_EQ(rotated(text), 64);
  EXPECT_EQ(rotated(with(text, "0.5", "1.0")), 128);
  EXPECT_EQ(rotated(with(text, R"("partial_rotary_factor": 0.5)",
                         R"("rope_parameters": {"partial_rotary_factor": 0.25})")),
            32);
  EXPECT_EQ(refused_field(with(text, "0.5", "0.01")), "partial_rotary_factor");
  EXPECT_EQ(refused_field(with(text, "0.5", "1e300")), "partial_rotary_factor");
}

TEST(HfFamilies, Sd3WithNormsOfHeadsIsRead) {
  const std::string text = text_of("sd3-medium");
  EXPECT_EQ(read(with(text, "{", R"({"qk_norm": "rms_norm", )")).values.at("qk_norm"),
            ParameterValue(true));
  EXPECT_EQ(refused_field(with(text, "{", R"({"qk_norm": "layer_norm", )")), "qk_norm");
}

// Each makes it another computation.
TEST(HfFamilies, WhatIsNotBuiltIsRefusedByName) {
  struct Case {
    const char* model;
    const char* field;
    const char* value;
  };
  for (const Case& c :
       {Case{"gemma2-9b", "attention_bias", "true"},
        Case{"gemma2-9b", "use_bidirectional_attention", "true"},
        Case{"gemma2-9b", "partial_rotary_factor", "0.5"},
        Case{"gemma3", "attn_logit_softcapping", "50.0"},
        Case{"gemma3", "final_logit_softcapping", "30.0"},
        Case{"gemma3", "attention_bias", "true"},
        Case{"gpt-j-6b", "scale_attn_weights", "false"},
        Case{"gpt-j-6b", "rotary_dim", "512"},
        Case{"falcon-7b", "alibi", "true"},
        Case{"falcon-7b", "parallel_attn", "false"},
        Case{"falcon-7b", "new_decoder_architecture", "true"},
        Case{"falcon-7b", "num_ln_in_parallel_attn", "2"},
        Case{"bert-large", "is_decoder", "true"},
        Case{"bert-large", "position_embedding_type", "\"relative_key\""},
        Case{"bert-large", "hidden_act", "\"relu\""},
        Case{"phi3", "partial_rotary_factor", "0.75"},
        Case{"phi3", "attention_bias", "true"},
        Case{"glm4", "sliding_window", "4096"},
        Case{"glm4", "num_experts", "8"},
        Case{"mixtral-8x7b", "hidden_act", "\"gelu\""},
        Case{"qwen3-30b-a3b", "attention_bias", "true"},
        Case{"qwen3-30b-a3b", "decoder_sparse_step", "2"},
        Case{"qwen3-30b-a3b", "mlp_only_layers", "[0]"},
        Case{"deepseek-v2-lite", "scoring_func", "\"sigmoid\""},
        Case{"deepseek-v2-lite", "moe_layer_freq", "2"},
        Case{"deepseek-v3", "norm_topk_prob", "false"},
        Case{"deepseek-v3", "first_k_dense_replace", "61"},
        Case{"mamba-2.8b", "use_bias", "true"},
        Case{"mamba-2.8b", "time_step_rank", "\"some\""},
        Case{"mamba2-2.7b", "rms_norm", "false"},
        Case{"mamba2-2.7b", "num_heads", "81"},
        Case{"jamba", "mamba_proj_bias", "true"},
        Case{"t5-large", "feed_forward_proj", "\"gated-gelu\""},
        Case{"sd3-medium", "caption_projection_dim", "4096"},
        Case{"sd3-medium", "dual_attention_layers", "[0, 1]"},
        Case{"sd3-medium", "quantization_config", "{\"quant_method\": \"bitsandbytes\"}"}}) {
    // Of two fields of one name the later counts.
    std::string text = text_of(c.model);
    text.insert(text.rfind('}'), std::string(", \"") + c.field + "\": " + c.value);
    EXPECT_EQ(refused_field(text), c.field) << c.model;
    EXPECT_EQ(refused_field(text_of(c.model)), "") << c.model;
  }
}

}  // namespace
}  // namespace fuseline
