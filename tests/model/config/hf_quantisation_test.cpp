// quantization_config of a Hugging Face config.json: what is read, and what is refused by name.
#include "model/config/hf_quantisation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config/hf_config.h"

namespace fuseline {
namespace {

std::string file(const std::string& quantisation) {
  return R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
    "max_position_embeddings": 512, "quantization_config": )" +
         quantisation + "}";
}

std::string weights_of(const std::string& quantisation) {
  return parse_hf_config(file(quantisation), "dir/config.json").formats.weights.name();
}

std::string cache_of(const std::string& quantisation) {
  return parse_hf_config(file(quantisation), "dir/config.json").formats.cache.name();
}

std::string activations_of(const std::string& quantisation) {
  return parse_hf_config(file(quantisation), "dir/config.json").formats.activations.name();
}

InputProblem quantisation_problem(const std::string& quantisation) {
  try {
    static_cast<void>(parse_hf_config(file(quantisation), "dir/config.json"));
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().file, "dir/config.json");
    EXPECT_FALSE(error.problem().allowed.empty()) << quantisation;
    return error.problem();
  }
  ADD_FAILURE() << quantisation << " was read";
  return {};
}

TEST(HfQuantisation, IsReadAsPublishedFilesWriteIt) {
  // AutoAWQ
  EXPECT_EQ(weights_of(R"({"bits": 4, "group_size": 128, "modules_to_not_convert": null,
      "quant_method": "awq", "version": "gemm", "zero_point": true})"),
            "int4-zero");
  EXPECT_EQ(weights_of(R"({"w_bit": 4, "group_size": 64, "quant_method": "awq",
      "zero_point": false})"),
            "int4:64");
  // GPTQ
  EXPECT_EQ(weights_of(R"({"bits": 4, "damp_percent": 0.1, "desc_act": false, "group_size": 128,
      "model_seqlen": 4096, "quant_method": "gptq", "sym": true, "true_sequential": true})"),
            "int4");
  EXPECT_EQ(weights_of(R"({"bits": 4, "group_size": 32, "quant_method": "gptq", "sym": false})"),
            "int4-zero:32");
  EXPECT_EQ(weights_of(R"({"bits": 8, "group_size": -1, "quant_method": "gptq"})"), "int8");
  EXPECT_EQ(weights_of(R"({"bits": 4, "group_size": -1, "quant_method": "gptq"})"), "int4:0");
  EXPECT_EQ(weights_of(R"({"bits": 8, "group_size": 128, "quant_method": "gptq",
      "modules_to_not_convert": ["lm_head"]})"),
            "int8:128");
  EXPECT_EQ(weights_of(R"({"quant_method": "fp8", "fmt": "e4m3"})"), "fp8");
  EXPECT_EQ(weights_of(R"({"quant_method": "fp8", "weight_block_size": [128, 128],
      "ignored_layers": ["lm_head", "model.norm"]})"),
            "fp8-block");
  EXPECT_EQ(weights_of(R"({"quant_method": "mxfp4"})"), "mxfp4");
  for (const char* nothing : {"null", "{}"}) EXPECT_EQ(weights_of(nothing), "");
}

// compressed-tensors: one group of all linear layers.
std::string compressed(const std::string& weights, const std::string& activations = "null",
                       const std::string& others = R"("ignore": ["lm_head"])") {
  return R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets":
      ["Linear"], "output_activations": null, "weights": {)" +
         weights + R"(}, "input_activations": )" + activations + "}}, " + others + "}";
}
const std::string kFp8Weights =
    R"("num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true, "dynamic": false)";
const std::string kFp8Tokens =
    R"({"num_bits": 8, "type": "float", "strategy": "token", "symmetric": true, "dynamic": true})";

TEST(HfQuantisation, ReadsCompressedTensors) {
  const struct {
    std::string text;
    const char* weights;
    const char* activations;
  } cases[] = {
      {compressed(kFp8Weights), "fp8", ""},
      {compressed(kFp8Weights, kFp8Tokens), "fp8", "fp8"},
      {compressed(R"("num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true)",
                  R"({"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true})"),
       "int8", "int8"},
      {compressed(R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128)"),
       "int4", ""},
      {compressed(R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 64,
          "symmetric": false, "actorder": "weight")"),
       "int4-zero:64", ""},
      {compressed(R"("num_bits": 4, "type": "int", "strategy": "channel")"), "int4:0", ""},
      {compressed(R"("num_bits": 8, "type": "int", "strategy": "group", "group_size": 128)"),
       "int8:128", ""},
      {compressed(R"("num_bits": 4, "type": "float", "strategy": "tensor_group",
          "group_size": 16)"),
       "nvfp4", ""},
      {compressed(R"("num_bits": 8, "type": "float", "strategy": "block",
          "block_structure": [128, 128])",
                  R"({"num_bits": 8, "type": "float", "strategy": "group", "group_size": 128,
          "dynamic": true})"),
       "fp8-block", "fp8-block"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(weights_of(c.text), c.weights) << c.text;
    EXPECT_EQ(activations_of(c.text), c.activations) << c.text;
  }
  // With the cache.
  const std::string both =
      compressed(kFp8Weights, kFp8Tokens,
                 R"("kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor",
         "dynamic": false})");
  EXPECT_EQ(cache_of(both), "fp8");
  EXPECT_EQ(activations_of(both), "fp8");
}

TEST(HfQuantisation, RefusesOtherCompressedTensorsByName) {
  const struct {
    std::string text;
    const char* field;
    const char* value;
  } cases[] = {
      {R"({"quant_method": "compressed-tensors"})", "config_groups", ""},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"a": {}, "b": {}}})",
       "config_groups", "2 groups"},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets":
          ["re:.*q_proj"]}}})",
       "config_groups.g.targets", R"(["re:.*q_proj"])"},
      {compressed(R"("num_bits": 3, "type": "int", "strategy": "group")"),
       "config_groups.group_0.weights.strategy", "int3 group"},
      {compressed(R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128,
          "actorder": "group")"),
       "config_groups.group_0.weights.actorder", "group"},
      {compressed(R"("num_bits": 8, "type": "int", "strategy": "channel", "symmetric": false)"),
       "config_groups.group_0.weights.symmetric", "false"},
      {compressed(R"("num_bits": 8, "type": "float", "strategy": "block",
          "block_structure": [64, 128])"),
       "config_groups.group_0.weights.block_structure", "[64,128]"},
      {compressed(kFp8Weights, R"({"num_bits": 8, "type": "float", "strategy": "tensor",
          "dynamic": false})"),
       "config_groups.group_0.input_activations.dynamic", "false"},
      {compressed(kFp8Weights, R"({"num_bits": 8, "type": "float", "strategy": "tensor",
          "dynamic": true})"),
       "config_groups.group_0.input_activations.strategy", "float8 tensor"},
      {compressed(kFp8Weights, R"({"num_bits": 8, "type": "int", "strategy": "token",
          "dynamic": true})"),
       "config_groups.group_0.input_activations.strategy", "int8 token"},
      {compressed(kFp8Weights, kFp8Tokens, R"("ignore": ["model.layers.0.mlp.gate"])"), "ignore",
       "model.layers.0.mlp.gate"},
      {compressed(kFp8Weights, R"("token")"), "config_groups.group_0.input_activations", "token"},
  };
  for (const auto& c : cases) {
    const InputProblem p = quantisation_problem(c.text);
    EXPECT_EQ(p.field, std::string("quantization_config.") + c.field) << c.text;
    EXPECT_EQ(p.value, c.value) << c.text;
  }
}

// DeepSeek-V3 and Qwen3 are published so: rows are scaled as the weights are.
TEST(HfQuantisation, SaysHowActivationsAreMultiplied) {
  EXPECT_EQ(activations_of(R"({"quant_method": "fp8", "activation_scheme": "dynamic",
      "weight_block_size": [128, 128]})"),
            "fp8-block");
  EXPECT_EQ(activations_of(R"({"quant_method": "fp8", "activation_scheme": "dynamic"})"), "fp8");
  EXPECT_EQ(activations_of(R"({"quant_method": "fp8"})"), "");
  const InputProblem p =
      quantisation_problem(R"({"quant_method": "fp8", "activation_scheme": "static"})");
  EXPECT_EQ(p.field, "quantization_config.activation_scheme");
  EXPECT_EQ(p.value, "static");
}

// As llm-compressor and ModelOpt write it.
TEST(HfQuantisation, SaysHowTheCacheIsKept) {
  const std::string scheme = R"("kv_cache_scheme": {"num_bits": 8, "type": "float",
      "strategy": "tensor", "dynamic": false, "symmetric": true})";
  EXPECT_EQ(
      cache_of(R"({"quant_method": "compressed-tensors", "config_groups": {}, )" + scheme + "}"),
      "fp8");
  EXPECT_EQ(weights_of(R"({"quant_method": "compressed-tensors", )" + scheme + "}"), "");
  const std::string both = R"({"quant_method": "fp8", )" + scheme + "}";
  EXPECT_EQ(weights_of(both), "fp8");
  EXPECT_EQ(cache_of(both), "fp8");
  EXPECT_EQ(cache_of(R"({"quant_method": "fp8", "kv_cache_quant_algo": "FP8"})"), "fp8");
  for (const char* none : {"kv_cache_scheme", "kv_cache_quant_algo"})
    EXPECT_EQ(cache_of(std::string(R"({"quant_method": "fp8", ")") + none + R"(": null})"), "");
  EXPECT_EQ(cache_of(R"({"quant_method": "mxfp4"})"), "");
}

TEST(HfQuantisation, RefusesOtherCachesByName) {
  const auto scheme = [](const std::string& members) {
    return R"({"quant_method": "fp8", "kv_cache_scheme": {)" + members + "}}";
  };
  const struct {
    std::string text;
    const char* field;
    const char* value;
  } cases[] = {{scheme(R"("num_bits": 4, "type": "float", "strategy": "tensor")"),
                "kv_cache_scheme.num_bits", "4"},
               {scheme(R"("num_bits": 8, "type": "int", "strategy": "tensor")"),
                "kv_cache_scheme.type", "int"},
               {scheme(R"("num_bits": 8, "type": "float", "strategy": "attn_head")"),
                "kv_cache_scheme.strategy", "attn_head"},
               {scheme(R"("num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": true)"),
                "kv_cache_scheme.dynamic", "true"},
               {scheme(R"("num_bits": 8)"), "kv_cache_scheme.type", ""},
               {R"({"quant_method": "fp8", "kv_cache_scheme": "fp8"})", "kv_cache_scheme", "fp8"},
               {R"({"quant_method": "fp8", "kv_cache_quant_algo": "NVFP4"})", "kv_cache_quant_algo",
                "NVFP4"}};
  for (const auto& c : cases) {
    const InputProblem p = quantisation_problem(c.text);
    EXPECT_EQ(p.field, std::string("quantization_config.") + c.field) << c.text;
    EXPECT_EQ(p.value, c.value) << c.text;
  }
}

TEST(HfQuantisation, RefusesByName) {
  const struct {
    const char* text;
    const char* field;
    const char* value;
  } cases[] = {
      {R"({"quant_method": "awq", "bits": 3, "group_size": 128})", "bits", "3"},
      {R"({"quant_method": "awq", "bits": 4})", "group_size", ""},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 7})", "group_size", "7"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": "all"})", "group_size", "all"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": 1})", "zero_point",
       "1"},
      {R"({"quant_method": "awq", "group_size": 128})", "bits", ""},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})", "desc_act",
       "true"},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": 128, "sym": false})", "sym", "false"},
      {R"({"quant_method": "gptq", "bits": 18446744073709551615, "group_size": 128})", "bits",
       "18446744073709551615"},
      {R"({"quant_method": "fp8", "weight_block_size": [64, 128]})", "weight_block_size",
       "[64,128]"},
      {R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]})",
       "modules_to_not_convert", "model.layers.*.self_attn"},
      {R"({"quant_method": "fp8", "ignored_layers": "lm_head"})", "ignored_layers", "lm_head"},
  };
  for (const auto& c : cases) {
    const InputProblem p = quantisation_problem(c.text);
    EXPECT_EQ(p.field, std::string("quantization_config.") + c.field) << c.text;
    EXPECT_EQ(p.value, c.value) << c.text;
  }
}

}  // namespace
}  // namespace fuseline
