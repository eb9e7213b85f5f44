#include "model/config/hf_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"

namespace fuseline {
namespace {

// The fields of published configs that matter here, and some that must be ignored.
constexpr const char* kLlama = R"({
  "_name_or_path": "meta-llama/Llama-3-8B",
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_act": "silu",
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "num_hidden_layers": 32,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "vocab_size": 128256,
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "rope_scaling": null,
  "max_position_embeddings": 8192,
  "attention_bias": false,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16"
})";
constexpr const char* kMistral = R"({"architectures": ["MistralForCausalLM"],
  "model_type": "mistral", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
  "max_position_embeddings": 512, "sliding_window": 128, "rope_theta": 10000})";
constexpr const char* kQwen2 = R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 512,
  "sliding_window": 128, "use_sliding_window": false, "max_window_layers": 4,
  "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true})";
constexpr const char* kQwen3 = R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
  "attention_bias": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 12288, "max_position_embeddings": 40960, "max_window_layers": 36,
  "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false,
  "vocab_size": 151936})";
constexpr const char* kGpt2 = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
  "activation_function": "gelu_new", "n_embd": 1600, "n_layer": 48, "n_head": 25,
  "n_inner": null, "vocab_size": 50257, "n_positions": 1024, "layer_norm_epsilon": 1e-05})";

ModelConfig read_config(const std::string& text) {
  return parse_hf_config(text, "dir/config.json");
}

// Replaces the first `old` in the text; the test is wrong when it is not there.
std::string config_with(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), replacement);
}

InputProblem config_problem(const std::string& text) {
  try {
    read_config(text);
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "nothing was refused in " << text;
  return {};
}

TEST(HfConfig, ReadsLlama) {
  const ModelConfig c = read_config(kLlama);
  EXPECT_EQ(c.name, "Llama-3-8B");
  EXPECT_TRUE(c.is_all("llama"));
  EXPECT_EQ(c.D, 4096);
  EXPECT_EQ(c.F, 14336);
  EXPECT_EQ(c.layers, 32);
  EXPECT_EQ(c.H, 32);
  EXPECT_EQ(c.Hkv, 8);
  EXPECT_EQ(c.d, 128);
  EXPECT_EQ(c.V, 128256);
  EXPECT_EQ(c.max_positions, 8192);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_EQ(c.rope_theta, 500000.0);
  EXPECT_EQ(c.sliding_window, 0);
  EXPECT_FALSE(c.qkv_bias || c.out_bias || c.mlp_bias || c.tied_embeddings);
}

TEST(HfConfig, LlamaBiasesCoverBothProjectionsOfAttention) {
  ModelConfig c =
      read_config(config_with(kLlama, "\"attention_bias\": false", "\"attention_bias\": true"));
  EXPECT_TRUE(c.qkv_bias && c.out_bias);
  EXPECT_FALSE(c.mlp_bias);
  c = read_config(config_with(kLlama, "\"attention_bias\": false", "\"mlp_bias\": true"));
  EXPECT_TRUE(c.mlp_bias);
  EXPECT_FALSE(c.qkv_bias || c.out_bias);
}

TEST(HfConfig, FirstLlamaFilesHaveNoKeyValueHeads) {
  EXPECT_EQ(read_config(config_with(kLlama, "\"num_key_value_heads\": 8,", "")).Hkv, 32);
  EXPECT_EQ(read_config(
                config_with(kLlama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": null"))
                .Hkv,
            32);
}

TEST(HfConfig, HeadWidthMayDifferFromTheWidthOverHeads) {
  EXPECT_EQ(read_config(config_with(kLlama, "\"rope_scaling\": null", "\"head_dim\": 64")).d, 64);
  EXPECT_EQ(read_config(config_with(kLlama, "\"rope_scaling\": null", "\"head_dim\": null")).d,
            128);
}

TEST(HfConfig, RopeThetaMayStandInRopeParameters) {
  EXPECT_EQ(read_config(
                config_with(kLlama, "\"rope_theta\": 500000.0",
                            "\"rope_parameters\": {\"rope_theta\": 25000.0, \"rope_type\": \"x\"}"))
                .rope_theta,
            25000.0);
  EXPECT_EQ(read_config(config_with(kLlama, "\"rope_theta\": 500000.0,", "")).rope_theta, 10000.0);
}

TEST(HfConfig, ReadsMistralAndItsWindow) {
  const ModelConfig c = read_config(kMistral);
  EXPECT_EQ(c.sliding_window, 128);
  EXPECT_EQ(c.Hkv, 2);
  EXPECT_EQ(c.rope_theta, 10000.0);
  EXPECT_FALSE(c.qkv_bias || c.out_bias || c.mlp_bias);
  EXPECT_EQ(
      read_config(config_with(kMistral, "\"sliding_window\": 128", "\"sliding_window\": null"))
          .sliding_window,
      0);
  EXPECT_EQ(read_config(config_with(kMistral, "\"sliding_window\": 128, ", "")).sliding_window,
            4096);
}

TEST(HfConfig, ReadsQwen2WithBiasOnQueryKeyValueOnly) {
  const ModelConfig c = read_config(kQwen2);
  EXPECT_TRUE(c.qkv_bias);
  EXPECT_FALSE(c.out_bias || c.mlp_bias);
  EXPECT_TRUE(c.tied_embeddings);
  EXPECT_EQ(c.norm_eps, 1e-6);
}

TEST(HfConfig, Qwen2UsesItsWindowOnlyWhenTold) {
  EXPECT_EQ(read_config(kQwen2).sliding_window, 0);
  const std::string on =
      config_with(kQwen2, "\"use_sliding_window\": false", "\"use_sliding_window\": true");
  const std::string layers = "\"max_window_layers\": 4";
  EXPECT_EQ(read_config(on).sliding_window, 0);  // the first 4 of 4 layers see all tokens
  EXPECT_EQ(read_config(config_with(on, layers, "\"max_window_layers\": 0")).sliding_window, 128);
  EXPECT_EQ(read_config(config_with(on, layers, "\"x\": 0")).sliding_window, 128);
  const InputProblem p = config_problem(config_with(on, layers, "\"max_window_layers\": 2"));
  EXPECT_EQ(p.field, "max_window_layers");
}

TEST(HfConfig, ReadsGpt2) {
  const ModelConfig c = read_config(kGpt2);
  EXPECT_TRUE(c.is_all("gpt"));
  EXPECT_EQ(c.D, 1600);
  EXPECT_EQ(c.F, 6400);
  EXPECT_EQ(c.layers, 48);
  EXPECT_EQ(c.H, 25);
  EXPECT_EQ(c.Hkv, 25);
  EXPECT_EQ(c.d, 64);
  EXPECT_EQ(c.V, 50257);
  EXPECT_EQ(c.max_positions, 1024);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_TRUE(c.qkv_bias && c.out_bias && c.mlp_bias && c.tied_embeddings);
  EXPECT_EQ(read_config(config_with(kGpt2, "\"n_inner\": null", "\"n_inner\": 512")).F, 512);
}

TEST(HfConfig, NameComesFromTheFileThenItsFolder) {
  EXPECT_EQ(parse_hf_config(kMistral, "models/tiny/config.json").name, "tiny");
  EXPECT_EQ(parse_hf_config(kMistral, "config.json").name, "mistral");
  EXPECT_EQ(parse_hf_config(kMistral, "x/my-model.json").name, "my-model");
}

TEST(HfConfig, EitherArchitecturesOrModelTypeIsEnough) {
  EXPECT_EQ(read_config(config_with(kQwen2, "\"model_type\": \"qwen2\",", "")).qkv_bias, true);
  EXPECT_EQ(
      read_config(config_with(kQwen2, "\"architectures\": [\"Qwen2ForCausalLM\"],", "")).qkv_bias,
      true);
  EXPECT_EQ(read_config(config_with(kQwen2, "[\"Qwen2ForCausalLM\"]", "[\"Qwen2Model\"]")).qkv_bias,
            true);
  EXPECT_EQ(read_config(config_with(kQwen2, "[\"Qwen2ForCausalLM\"]", "null")).qkv_bias, true);
}

TEST(HfConfig, UnsupportedArchitecturesAreNamedWithThoseSupported) {
  for (const char* name : {"Qwen2MoeForCausalLM", "Llama4ForCausalLM", "DbrxForCausalLM", "Llama",
                           "Mistral3ForConditionalGeneration", ""}) {
    const InputProblem p = config_problem(config_with(kLlama, "LlamaForCausalLM", name));
    EXPECT_EQ(p.field, "architectures");
    EXPECT_EQ(p.value, name);
    EXPECT_EQ(p.message, "unsupported architecture");
    for (const std::string& type : hf_model_types()) {
      EXPECT_NE(p.allowed.find(type), std::string::npos) << p.allowed;
    }
  }
  const InputProblem p = config_problem(config_with(kMistral, "\"mistral\"", "\"dbrx\""));
  EXPECT_EQ(p.field, "model_type");
  EXPECT_EQ(p.value, "dbrx");
}

TEST(HfConfig, ArchitectureMustAgreeWithModelType) {
  const InputProblem p =
      config_problem(config_with(kLlama, "LlamaForCausalLM", "MistralForCausalLM"));
  EXPECT_EQ(p.field, "architectures");
  EXPECT_NE(p.message.find("model_type = 'llama'"), std::string::npos) << p.message;
  EXPECT_EQ(config_problem(config_with(kLlama, "[\"LlamaForCausalLM\"]", "[7]")).field,
            "architectures");
  EXPECT_EQ(config_problem(config_with(kLlama, "[\"LlamaForCausalLM\"]", "{}")).field,
            "architectures");
  EXPECT_EQ(config_problem(R"({"hidden_size": 1})").field, "model_type");
}

TEST(HfConfig, MissingDimensionsAreNamedAsTheFileSpellsThem) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "vocab_size", "max_position_embeddings"}) {
    const InputProblem p = config_problem(config_with(kLlama, std::string("\"") + key, "\"other"));
    EXPECT_EQ(p.field, key);
    EXPECT_EQ(p.message, "the field is missing");
  }
  EXPECT_EQ(config_problem(config_with(kMistral, "\"num_key_value_heads\"", "\"x\"")).field,
            "num_key_value_heads");
  for (const char* key : {"n_embd", "n_layer", "n_head", "n_positions"}) {
    EXPECT_EQ(config_problem(config_with(kGpt2, std::string("\"") + key, "\"other")).field, key);
  }
}

TEST(HfConfig, DimensionsAreWholePositiveAndBounded) {
  struct Case {
    const char* written;
    const char* message;
  };
  for (const Case& c :
       {Case{"0", "is too small"}, Case{"-4096", "is negative"},
        Case{"4096.5", "is not a whole number"}, Case{"\"4096\"", "is not a whole number"},
        Case{"16777217", "is too large"}, Case{"18446744073709551615", "is too large"},
        Case{"1e300", "is not a whole number"}, Case{"[4096]", "is not a whole number"},
        Case{"true", "is not a whole number"}}) {
    const InputProblem p = config_problem(
        config_with(kLlama, "\"hidden_size\": 4096", std::string("\"hidden_size\": ") + c.written));
    EXPECT_EQ(p.field, "hidden_size") << c.written;
    EXPECT_EQ(p.message, c.message) << c.written;
    EXPECT_EQ(p.file, "dir/config.json");
  }
  EXPECT_EQ(config_problem(
                config_with(kLlama, "\"num_hidden_layers\": 32", "\"num_hidden_layers\": 10001"))
                .message,
            "is too large");
}

TEST(HfConfig, RulesAcrossFieldsUseTheFilesNames) {
  EXPECT_EQ(config_problem(
                config_with(kLlama, "\"num_attention_heads\": 32", "\"num_attention_heads\": 30"))
                .field,
            "num_attention_heads");
  EXPECT_EQ(config_problem(
                config_with(kLlama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7"))
                .field,
            "num_key_value_heads");
  EXPECT_EQ(
      config_problem(config_with(kLlama, "\"rope_scaling\": null", "\"head_dim\": 127")).field,
      "head_dim");
  EXPECT_EQ(config_problem(config_with(kLlama, "1e-05", "-1e-05")).field, "rms_norm_eps");
  EXPECT_EQ(config_problem(config_with(kGpt2, "\"n_head\": 25", "\"n_head\": 24")).field, "n_head");
  EXPECT_EQ(config_problem(config_with(kGpt2, "1e-05", "2.0")).field, "layer_norm_epsilon");
  EXPECT_EQ(config_problem(config_with(kLlama, "500000.0", "\"big\"")).field, "rope_theta");
  EXPECT_EQ(config_problem(config_with(kLlama, "500000.0", "-1")).field, "rope_theta");
}

TEST(HfConfig, OtherActivationsAreRefused) {
  const InputProblem p = config_problem(config_with(kLlama, "\"silu\"", "\"gelu\""));
  EXPECT_EQ(p.field, "hidden_act");
  EXPECT_EQ(p.allowed, "silu, swish");
  EXPECT_EQ(config_problem(config_with(kGpt2, "gelu_new", "relu")).field, "activation_function");
}

TEST(HfConfig, SyntaxErrorsHaveLineAndColumn) {
  InputProblem p = config_problem("{\n  \"hidden_size\": 4096,\n  \"n\": @\n}");
  EXPECT_EQ(p.message.find("JSON syntax error: "), 0U) << p.message;
  EXPECT_EQ(p.line, 3);
  EXPECT_EQ(p.column, 8);
  p = config_problem("{\"a\": 1");  // ends too early
  EXPECT_EQ(p.line, 1);
  p = config_problem("{\"a\": \"" + std::string(100'000, 'x') + "\n\"}");
  EXPECT_LT(p.message.size(), 300U);
  EXPECT_EQ(config_problem("{\"a\": 1e999}").message, "a number in the file is too large");
}

TEST(HfConfig, OnlyAnObjectWithFieldsIsAConfig) {
  EXPECT_EQ(config_problem("[1, 2]").message, "the top level is not an object");
  EXPECT_EQ(config_problem("null").message, "the top level is not an object");
  EXPECT_EQ(config_problem("{}").message, "the file holds no fields");
}

TEST(HfConfig, DeepNestingDoesNotExhaustTheStack) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(config_problem("{\"a\": " + deep).message, "JSON is nested too deeply");
  const std::string closed = deep + std::string(200'000, ']');
  EXPECT_EQ(config_problem("{\"a\": " + closed + "}").message, "JSON is nested too deeply");
  // Of a depth that is read, what is missing is said.
  const std::string shallow = std::string(60, '[') + std::string(60, ']');
  EXPECT_EQ(config_problem("{\"a\": " + shallow + "}").field, "model_type");
}

// The same sizes and the same block as the shipped model, so the same plans.
TEST(HfConfig, Qwen3IsTheShippedModel) {
  const ModelConfig c = read_config(kQwen3);
  const ModelConfig shipped = load_model("qwen3-8b");
  EXPECT_TRUE(c.is_all("qwen3"));
  EXPECT_EQ(block_values(c, c.blocks[0]), block_values(shipped, shipped.blocks[0]));
  EXPECT_EQ(c.layers, shipped.layers);
  EXPECT_EQ(read_config(config_with(kQwen3, "\"head_dim\": 128, ", "")).d, 128);
  EXPECT_EQ(
      config_problem(config_with(kQwen3, "\"attention_bias\": false", "\"attention_bias\": true"))
          .field,
      "attention_bias");
  EXPECT_EQ(config_problem(config_with(kQwen3, "Qwen3For", "Qwen3MoeFor")).field, "architectures");
}

}  // namespace
}  // namespace fuseline
