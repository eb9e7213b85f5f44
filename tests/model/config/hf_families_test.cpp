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

namespace fuseline {
namespace {

struct Published {
  const char* model;  // that we ship
  const char* text;   // the fields that matter, and some that do not
};

const Published kPublished[] = {
    {"gemma2-9b", R"({"architectures": ["Gemma2ForCausalLM"], "attention_bias": false,
  "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "head_dim": 256,
  "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3584,
  "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "gemma2",
  "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8,
  "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
  "sliding_window": 4096, "sliding_window_size": 4096, "torch_dtype": "float32",
  "vocab_size": 256000})"},
    {"gemma3", R"({"architectures": ["Gemma3ForCausalLM"], "attention_bias": false,
  "attn_logit_softcapping": null, "final_logit_softcapping": null, "head_dim": 256,
  "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3840, "intermediate_size": 15360,
  "max_position_embeddings": 131072, "model_type": "gemma3_text", "num_attention_heads": 16,
  "num_hidden_layers": 48, "num_key_value_heads": 8, "query_pre_attn_scalar": 256,
  "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0,
  "sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208})"},
    {"gpt-j-6b", R"({"activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"],
  "attn_pdrop": 0.0, "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096,
  "n_head": 16, "n_inner": null, "n_layer": 28, "n_positions": 2048, "rotary": true,
  "rotary_dim": 64, "scale_attn_weights": true, "tie_word_embeddings": false,
  "vocab_size": 50400})"},
    {"falcon-7b", R"({"alibi": false, "architectures": ["FalconForCausalLM"], "bias": false,
  "hidden_size": 4544, "layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": true,
  "new_decoder_architecture": false, "num_attention_heads": 71, "num_hidden_layers": 32,
  "parallel_attn": true, "torch_dtype": "bfloat16", "vocab_size": 65024})"},
    {"bert-large", R"({"architectures": ["BertForMaskedLM"], "hidden_act": "gelu",
  "hidden_size": 1024, "intermediate_size": 4096, "layer_norm_eps": 1e-12,
  "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 16,
  "num_hidden_layers": 24, "position_embedding_type": "absolute", "type_vocab_size": 2,
  "vocab_size": 30522})"},
    {"vit-l", R"({"architectures": ["ViTForImageClassification"], "hidden_act": "gelu",
  "hidden_size": 1024, "image_size": 224, "intermediate_size": 4096, "layer_norm_eps": 1e-12,
  "model_type": "vit", "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 16,
  "qkv_bias": true})"},
    {"phi3",
     R"({"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "hidden_act": "silu",
  "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
  "model_type": "phi3", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
  "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047,
  "tie_word_embeddings": false, "vocab_size": 32064})"},
    {"glm4", R"({"architectures": ["Glm4ForCausalLM"], "attention_bias": true, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13696,
  "max_position_embeddings": 32768, "model_type": "glm4", "num_attention_heads": 32,
  "num_hidden_layers": 40, "num_key_value_heads": 2, "partial_rotary_factor": 0.5,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "vocab_size": 151552})"},
    {"mixtral-8x7b", R"({"architectures": ["MixtralForCausalLM"], "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768,
  "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
  "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
  "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "vocab_size": 32000})"},
    {"qwen3-30b-a3b", R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
  "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
  "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
  "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
  "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": null,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})"},
    {"deepseek-v2-lite", R"({"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false,
  "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048,
  "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
  "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false,
  "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
  "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000,
  "routed_scaling_factor": 1.0, "scoring_func": "softmax", "tie_word_embeddings": false,
  "topk_method": "greedy", "v_head_dim": 128, "vocab_size": 102400})"},
    {"deepseek-v3", R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false,
  "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
  "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8,
  "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
  "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000,
  "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false,
  "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280})"},
    {"mamba-2.8b", R"({"architectures": ["MambaForCausalLM"], "conv_kernel": 4, "expand": 2,
  "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 5120,
  "layer_norm_epsilon": 1e-05, "model_type": "mamba", "num_hidden_layers": 64,
  "state_size": 16, "time_step_rank": 160, "use_bias": false, "use_conv_bias": true,
  "vocab_size": 50280})"},
    {"mamba2-2.7b", R"({"architectures": ["Mamba2ForCausalLM"], "chunk_size": 256,
  "conv_kernel": 4, "expand": 2, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2560,
  "layer_norm_epsilon": 1e-05, "model_type": "mamba2", "n_groups": 1, "num_heads": 80,
  "num_hidden_layers": 64, "state_size": 128, "tie_word_embeddings": true, "use_bias": false,
  "use_conv_bias": true, "vocab_size": 50288})"},
    {"jamba", R"({"architectures": ["JambaForCausalLM"], "attn_layer_offset": 4,
  "attn_layer_period": 8, "expert_layer_offset": 1, "expert_layer_period": 2,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "mamba_conv_bias": true,
  "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256, "mamba_expand": 2,
  "mamba_proj_bias": false, "max_position_embeddings": 262144, "model_type": "jamba",
  "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": false, "vocab_size": 65536})"},
    {"t5-large", R"({"architectures": ["T5ForConditionalGeneration"], "d_ff": 4096, "d_kv": 64,
  "d_model": 1024, "dropout_rate": 0.1, "is_encoder_decoder": true, "layer_norm_epsilon": 1e-06,
  "model_type": "t5", "num_heads": 16, "num_layers": 24, "relative_attention_num_buckets": 32,
  "vocab_size": 32128})"},
    {"sd3-medium", R"({"_class_name": "SD3Transformer2DModel", "_diffusers_version": "0.29.0.dev0",
  "attention_head_dim": 64, "caption_projection_dim": 1536, "in_channels": 16,
  "joint_attention_dim": 4096, "num_attention_heads": 24, "num_layers": 24, "out_channels": 16,
  "patch_size": 2, "pooled_projection_dim": 2048, "pos_embed_max_size": 192,
  "sample_size": 128})"}};

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
