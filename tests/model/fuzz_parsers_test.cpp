// Mutates good files at random, always the same way: whatever comes out, only InputError may be
// thrown, and what is accepted must be a model or workload within the limits.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/toml_file.h"
#include "model/blocks/block.h"
#include "model/config/hf_config.h"
#include "model/config/model_files.h"
#include "model/config/scenario.h"
#include "model/import/import_graph.h"
#include "tests/model/config/published_configs.h"

namespace fuseline {
namespace {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string operator()(std::string text) {
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  void edit(std::string& text) {
    // Pieces that mean something in TOML or JSON, and bytes that mean nothing anywhere.
    static constexpr std::array<std::string_view, 24> pieces = {"-",
                                                                "0",
                                                                "9",
                                                                "1e999",
                                                                "nan",
                                                                "inf",
                                                                "null",
                                                                "true",
                                                                "\"",
                                                                "'''",
                                                                "{",
                                                                "}",
                                                                "[",
                                                                "]",
                                                                "[[",
                                                                "=",
                                                                ":",
                                                                ",",
                                                                "\n",
                                                                ".",
                                                                "99999999999999999999",
                                                                "-9223372036854775808",
                                                                "\xff\xfe",
                                                                "\\u0000"};
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 1:
        text.replace(at, below(4), pieces[below(pieces.size())]);
        break;
      case 2:
        text.erase(at, below(16));
        break;
      case 3:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      default:
        text.insert(at, text.substr(below(text.size() + 1), below(64)));
        break;
    }
  }

  std::mt19937 random_;
};

struct Outcome {
  int accepted = 0;
  int refused = 0;
};

// Runs `parse` on `rounds` mutations of each text.
template <class Parse>
Outcome fuzz(const std::vector<std::string>& texts, int rounds, Parse parse) {
  Outcome outcome;
  Mutator mutate(4711);
  for (const std::string& text : texts) {
    for (int round = 0; round < rounds; ++round) {
      const std::string mutated = mutate(text);
      try {
        parse(mutated);
        ++outcome.accepted;
      } catch (const InputError& error) {
        ++outcome.refused;
        EXPECT_FALSE(error.problem().message.empty()) << mutated;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what() << " from\n" << mutated;
      }
    }
  }
  return outcome;
}

// A fuzzer whose files are all refused, or all accepted, tests one path only.
void expect_both(const Outcome& outcome) {
  EXPECT_GT(outcome.accepted, outcome.refused / 100);
  EXPECT_GT(outcome.refused, outcome.accepted / 100);
}

void fuzz_model_toml(int rounds) {
  std::vector<std::string> texts;
  for (const char* name : {"llama2-7b", "gpt2-xl", "mistral-7b"}) {
    texts.push_back(read_input_file(data_dir() / "models" / (std::string(name) + ".toml")));
  }
  expect_both(fuzz(texts, rounds, [](const std::string& text) {
    check_config(read_model(TomlTable::parse(text, "fuzz.toml")), "fuzz.toml");
  }));
}

void fuzz_hugging_face_json(int rounds) {
  const std::vector<std::string> texts = {
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
 "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": null,
 "num_key_value_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
 "rope_parameters": {"rope_theta": 1e4}, "max_position_embeddings": 4096, "attention_bias": false})",
      R"({"architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584, "intermediate_size": 18944,
 "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
 "max_position_embeddings": 32768, "use_sliding_window": true, "sliding_window": 4096,
 "max_window_layers": 28, "rope_theta": 1000000.0})",
      R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_inner": null,
 "vocab_size": 50257, "n_positions": 1024, "layer_norm_epsilon": 1e-05, "_name_or_path": "gpt2"})"};
  expect_both(fuzz(texts, rounds, [](const std::string& text) {
    check_config(parse_hf_config(text, "config.json"), "config.json");
  }));
}

// Every architecture, and weights in few bits: what is accepted has blocks or says why not.
void fuzz_published_configs(int rounds) {
  std::vector<std::string> texts;
  for (const Published& p : kPublished) {
    texts.emplace_back(p.text);
    if (std::string_view(p.model).starts_with("mixtral"))
      texts.push_back(
          texts.back().substr(0, texts.back().size() - 1) +
          R"(, "quantization_config": {"bits": 4, "group_size": 128, "quant_method": "awq",
 "version": "gemm", "zero_point": true, "modules_to_not_convert": ["gate"]}})");
  }
  expect_both(fuzz(texts, rounds, [](const std::string& text) {
    const ModelConfig c = parse_hf_config(text, "config.json");
    check_config(c, "config.json");
    for (const BlockUse& layer : c.blocks) {
      const Graph g = build_block(c, layer, Workload{.batch = 1, .seq = 2});
      EXPECT_FALSE(g.ops().empty());
    }
  }));
}

void fuzz_scenario_toml(int rounds) {
  std::vector<std::string> texts;
  for (const std::string& name : scenario_names()) {
    texts.push_back(read_input_file(data_dir() / (name + ".toml")));
  }
  ASSERT_FALSE(texts.empty());
  const std::string path = testing::TempDir() + "fuzz_scenario_" + std::to_string(rounds) + ".toml";
  ModelConfig one_head;
  one_head.H = 1;
  expect_both(fuzz(texts, rounds, [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const Scenario s = load_scenario(path);
    check_workload(s.workload, one_head);
    ASSERT_FALSE(s.policies.empty());
  }));
  std::filesystem::remove(path);
}

void fuzz_with_noise(int rounds) {
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_THROW(parse_hf_config(text, "n"), InputError);
    EXPECT_THROW(read_model(TomlTable::parse(text, "n")), InputError);
    EXPECT_THROW(import_graph(text, "n"), InputError);
  }
}

void fuzz_saved_graphs(int rounds) {
  std::vector<std::string> texts;
  for (const char* name : {"llama", "gpt2.program", "gptj", "pytorch/mixtral", "pytorch/gemma3",
                           "pytorch/gpt_neox", "pytorch/llama.program"})
    texts.push_back(read_input_file(std::filesystem::path(FUSELINE_SOURCE_DIR) /
                                    "tests/model/import/graphs" / (std::string(name) + ".json")));
  // What comes out is a block that can be built: import_graph() itself builds it.
  expect_both(fuzz(texts, rounds, [](const std::string& text) {
    EXPECT_FALSE(import_graph(text, "fuzz.json").text.empty());
  }));
}

// A tenth of the mutations is tried each time, all of them by ./test.sh --long.
TEST(FuzzParsers, ModelToml) { fuzz_model_toml(400); }
TEST(LongFuzzParsers, ModelToml) { fuzz_model_toml(4000); }

TEST(FuzzParsers, HuggingFaceJson) { fuzz_hugging_face_json(400); }
TEST(LongFuzzParsers, HuggingFaceJson) { fuzz_hugging_face_json(4000); }

TEST(FuzzParsers, PublishedConfigs) { fuzz_published_configs(60); }
TEST(LongFuzzParsers, PublishedConfigs) { fuzz_published_configs(2000); }

TEST(FuzzParsers, SavedGraphs) { fuzz_saved_graphs(100); }
TEST(LongFuzzParsers, SavedGraphs) { fuzz_saved_graphs(4000); }

TEST(FuzzParsers, ScenarioToml) { fuzz_scenario_toml(50); }
TEST(LongFuzzParsers, ScenarioToml) { fuzz_scenario_toml(500); }

TEST(FuzzParsers, Noise) { fuzz_with_noise(200); }
TEST(LongFuzzParsers, Noise) { fuzz_with_noise(2000); }

TEST(FuzzParsers, RunsOfOneCharacter) {
  for (int c = 0; c < 256; ++c) {
    for (const std::size_t length : std::array<std::size_t, 4>{1, 100, 1999, 200'000}) {
      const std::string text(length, static_cast<char>(c));
      EXPECT_THROW(parse_hf_config(text, "n"), InputError) << c << " x " << length;
      EXPECT_THROW(read_model(TomlTable::parse(text, "n")), InputError) << c << " x " << length;
    }
  }
}

// Whatever opens a level, opened again and again, over lines too: parsers recurse, and stacks end.
TEST(FuzzParsers, Depth) {
  const std::array<std::string_view, 12> openings = {
      "[",        "[\n",          "{",          "{\"a\":",  "{\"a\":\n[", "a.",
      "a = {a.a", "{a.a.a = [\n", "[[a.a]]\na", "a = [\"[", "'[' = [",    "{ \"a.b\" = [\n{"};
  std::mt19937 random(11);
  for (const std::string_view first : openings) {
    for (const std::string_view second : openings) {
      for (const int times : {3, 40, 300, 20'000}) {
        std::string text;
        for (int i = 0; i < times; ++i) text += random() % 8 == 0 ? second : first;
        EXPECT_THROW(parse_hf_config(text, "n"), InputError) << first << " x " << times;
        EXPECT_THROW(read_model(TomlTable::parse(text, "n")), InputError)
            << first << " x " << times;
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
