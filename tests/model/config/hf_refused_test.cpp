// Fields of a config.json that change the computation: each is refused by name, and passes at the
// value that changes nothing.
#include "model/config/hf_refused.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/config/hf_config.h"

namespace fuseline {
namespace {

std::string llama_like(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
    "max_position_embeddings": 512, "sliding_window": null)" +
         (more.empty() ? "" : ", ") + more + "}";
}

std::string gpt2(const std::string& more) {
  return R"({"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1000,
    "n_positions": 512, )" +
         more + "}";
}

// Empty fields when the text is accepted.
InputProblem refused_problem(const std::string& text) {
  try {
    parse_hf_config(text, "dir/config.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().file, "dir/config.json");
    EXPECT_FALSE(error.problem().allowed.empty());
    return error.problem();
  }
  return {};
}

TEST(HfRefused, QuantisedWeightsWithTheirMethod) {
  struct Case {
    const char* field;
    const char* json;
    const char* value;
  };
  for (const Case& c :
       {Case{"quantization_config", R"({"quant_method": "hqq", "bits": 4})", "hqq, 4 bits"},
        Case{"quantization_config", R"({"quant_method": 4, "bits": 8})", "8 bits"},
        Case{"quantization_config", R"([4])", "[...]"},
        Case{"quant_config", R"({"quant_method": "awq", "bits": 4, "group_size": 128})",
             "awq, 4 bits"},
        Case{"quantization_config", R"({"quant_method": "bitsandbytes", "load_in_4bit": true})",
             "bitsandbytes, 4 bits"},
        Case{"quantization_config", R"({"load_in_8bit": true, "quant_method": null})", "8 bits"},
        Case{"quantization_config", R"({"quant_method": "quanto"})", "quanto"},
        Case{"compression_config", R"({"format": "int-quantized"})", "int-quantized"},
        Case{"compression_config", R"({"x": 1})", "{...}"},
        Case{"quantization", R"("w4a16")", "w4a16"}}) {
    for (const char* type : {"llama", "mistral", "qwen2"}) {
      const InputProblem p =
          refused_problem(llama_like(type, std::string("\"") + c.field + "\": " + c.json));
      EXPECT_EQ(p.field, c.field) << c.json;
      EXPECT_EQ(p.value, c.value) << c.json;
      EXPECT_NE(p.message.find("quantised weights"), std::string::npos) << p.message;
    }
    EXPECT_EQ(refused_problem(gpt2(std::string("\"") + c.field + "\": " + c.json)).field, c.field);
  }
  for (const char* nothing : {"null", "{}"}) {
    EXPECT_EQ(
        refused_problem(llama_like("llama", std::string("\"quantization_config\": ") + nothing))
            .field,
        "");
  }
}

TEST(HfRefused, TypesOfWeightsThatAreNoFormatHere) {
  for (const char* field : {"torch_dtype", "dtype"}) {
    for (const char* type : {"float8_e4m3fn", "torch.float8_e5m2", "int8", "uint8", "float64"}) {
      const InputProblem p = refused_problem(
          llama_like("llama", "\"" + std::string(field) + "\": \"" + std::string(type) + "\""));
      EXPECT_EQ(p.field, field);
      EXPECT_EQ(p.value, type);
    }
    for (const char* type : {"bfloat16", "float16", "float32", "torch.bfloat16", "auto"}) {
      EXPECT_EQ(refused_problem(llama_like("llama", "\"" + std::string(field) + "\": \"" +
                                                        std::string(type) + "\""))
                    .field,
                "")
          << type;
    }
  }
}

struct Field {
  const char* name;
  const char* refused;
  const char* passes;
};

TEST(HfRefused, WhatNoBlockHereHasInAnyFamily) {
  for (const Field& f : {Field{"num_local_experts", "8", "1"},
                         Field{"num_experts", "64", "0"},
                         Field{"n_routed_experts", "160", "null"},
                         Field{"num_experts_per_tok", "2", "1"},
                         Field{"moe_intermediate_size", "1408", "0"},
                         Field{"kv_lora_rank", "512", "null"},
                         Field{"q_lora_rank", "1536", "null"},
                         Field{"qk_rope_head_dim", "64", "null"},
                         Field{"v_head_dim", "128", "64"},
                         Field{"use_qk_norm", "true", "false"},
                         Field{"qk_layernorm", "true", "false"},
                         Field{"attn_logit_softcapping", "50.0", "null"},
                         Field{"final_logit_softcapping", "30.0", "null"},
                         Field{"clip_qkv", "8.0", "null"},
                         Field{"partial_rotary_factor", "0.5", "1.0"},
                         Field{"rotary_dim", "32", "64"},
                         Field{"no_rope_layers", "[1, 0]", "null"},
                         Field{"alibi", "true", "false"},
                         Field{"use_parallel_residual", "true", "false"},
                         Field{"attention_chunk_size", "8192", "null"},
                         Field{"num_kv_shared_layers", "1", "0"},
                         Field{"logit_scale", "0.0625", "1"},
                         Field{"is_encoder_decoder", "true", "false"},
                         Field{"add_cross_attention", "true", "false"},
                         Field{"vision_config", "{\"hidden_size\": 4}", "null"}}) {
    const auto with = [&](const char* value) {
      return "\"" + std::string(f.name) + "\": " + value;
    };
    for (const char* type : {"llama", "mistral", "qwen2"}) {
      EXPECT_EQ(refused_problem(llama_like(type, with(f.refused))).field, f.name);
      EXPECT_EQ(refused_problem(llama_like(type, with(f.passes))).field, "") << f.name;
    }
    EXPECT_EQ(refused_problem(gpt2(with(f.refused))).field, f.name);
    EXPECT_EQ(refused_problem(gpt2(with(f.passes))).field, "") << f.name;
  }
}

TEST(HfRefused, WhatTheFamilyDoesNotHave) {
  struct Case {
    const char* type;
    Field field;
  };
  for (const Case& c : {Case{"llama", {"bias", "true", "false"}},
                        Case{"mistral", {"attention_bias", "true", "false"}},
                        Case{"mistral", {"mlp_bias", "true", "false"}},
                        Case{"qwen2", {"attention_bias", "false", "true"}},
                        Case{"qwen2", {"mlp_bias", "true", "false"}}}) {
    const auto with = [&](const char* value) {
      return llama_like(c.type, "\"" + std::string(c.field.name) + "\": " + value);
    };
    EXPECT_EQ(refused_problem(with(c.field.refused)).field, c.field.name) << c.type;
    EXPECT_EQ(refused_problem(with(c.field.passes)).field, "") << c.type << " " << c.field.name;
  }
  for (const Field& f : {Field{"scale_attn_weights", "false", "true"},
                         Field{"scale_attn_by_inverse_layer_idx", "true", "false"},
                         Field{"reorder_and_upcast_attn", "true", "false"},
                         Field{"sliding_window", "128", "null"}, Field{"head_dim", "32", "64"},
                         Field{"position_embedding_type", "\"rope\"", "\"absolute\""}}) {
    EXPECT_EQ(refused_problem(gpt2("\"" + std::string(f.name) + "\": " + f.refused)).field, f.name);
    EXPECT_EQ(refused_problem(gpt2("\"" + std::string(f.name) + "\": " + f.passes)).field, "")
        << f.name;
  }
  // Where the field was null before, the later one of the same name counts.
  EXPECT_EQ(refused_problem(llama_like("llama", "\"sliding_window\": 4096")).field,
            "sliding_window");
}

TEST(HfRefused, APartialRopeInTheNestedParameters) {
  EXPECT_EQ(
      refused_problem(llama_like("llama", R"("rope_parameters": {"partial_rotary_factor": 0.5})"))
          .field,
      "rope_parameters.partial_rotary_factor");
  EXPECT_EQ(
      refused_problem(llama_like("llama", R"("rope_parameters": {"partial_rotary_factor": 1})"))
          .field,
      "");
}

TEST(HfLayerTypes, AllAlikeAreReadAndOthersRefused) {
  const auto window = [](const std::string& type, const std::string& types) {
    return parse_hf_config(
               llama_like(type, "\"layer_types\": [" + types +
                                    "], \"sliding_window\": 128, \"use_sliding_window\": true"),
               "c.json")
        .sliding_window;
  };
  const std::string full = "\"full_attention\"", slides = "\"sliding_attention\"";
  EXPECT_EQ(window("mistral", full + ", " + full), 0);
  EXPECT_EQ(window("mistral", slides + ", " + slides), 128);
  EXPECT_EQ(window("qwen2", full + ", " + full), 0);
  EXPECT_EQ(window("qwen2", slides + ", " + slides), 128);

  const auto refused = [](const std::string& type, const std::string& types) {
    return refused_problem(llama_like(type, "\"layer_types\": " + types));
  };
  for (const char* type : {"llama", "mistral", "qwen2"}) {
    EXPECT_EQ(refused(type, "[" + full + ", " + slides + "]").field, "layer_types");
    EXPECT_EQ(refused(type, "[" + full + "]").field, "layer_types");  // of two layers
    EXPECT_EQ(refused(type, "7").field, "layer_types");
    EXPECT_EQ(refused(type, R"(["linear_attention", "full_attention"])").value, "linear_attention");
    EXPECT_EQ(refused(type, "[" + full + ", " + full + "]").field, "");
  }
  EXPECT_EQ(refused("llama", "[" + slides + ", " + slides + "]").field, "layer_types");
}

}  // namespace
}  // namespace fuseline
