#include "model/config/model_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/toml_file.h"
#include "model/blocks/block.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

// A small model of each family without its optional fields.
constexpr const char* kLlamaFile = R"(name = "m"
title = "M"
family = "llama"
source = "invented"
layers = 2
D = 64
F = 96
H = 4
V = 100
max_positions = 128
norm = "rmsnorm"
norm_eps = 1e-6
activation = "swiglu"
)";
constexpr const char* kGpt = R"(name = "g"
title = "G"
family = "gpt"
source = "invented"
layers = 2
D = 64
F = 256
H = 4
V = 100
max_positions = 128
norm = "layernorm"
norm_eps = 1e-5
activation = "gelu-tanh"
)";

ModelConfig read_model(const std::string& text) {
  return read_model(TomlTable::parse(text, "m.toml"));
}

// The text with the line of `key` replaced by `line` (empty: removed).
std::string model_with(std::string text, const std::string& key, const std::string& line) {
  const std::size_t begin = text.find("\n" + key + " = ") + 1;
  const std::size_t end = text.find('\n', begin) + 1;
  return text.replace(begin, end - begin, line.empty() ? "" : line + "\n");
}

using test::problem_of;

TEST(ModelNames, HoldEveryModelOfTheContract) {
  const std::vector<std::string> names = model_names();
  for (const char* name : {"llama2-7b", "llama2-13b", "llama2-70b", "llama3-8b", "llama3-70b",
                           "tinyllama", "mistral-7b", "gpt2-xl", "gpt3-13b", "gpt3-175b"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

class ShippedModel : public testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, LoadsUnderItsName) {
  const ModelConfig c = load_model(GetParam());
  EXPECT_EQ(c.name, GetParam());
  EXPECT_NO_THROW(check_config(c, GetParam()));
}

// Weights of the whole model; the names carry the number of parameters.
TEST_P(ShippedModel, HasAsManyParametersAsItsNameSays) {
  const ModelConfig c = load_model(GetParam());
  const Workload one{.phase = Phase::forward, .batch = 1, .seq = 1};
  std::int64_t total = c.tied_embeddings ? -c.V * c.D : 0;
  const auto count = [&](const Graph& graph, std::int64_t times) {
    for (const Tensor& t : graph.tensors())
      if (t.role == Role::weight) total += times * t.rows * t.cols;
  };
  for (const BlockUse& use : c.blocks) count(build_block(c, use, one), c.layers_of(use));
  if (!c.entry.empty()) count(build_entry(c, one), 1);
  if (!c.exit.empty()) count(build_exit(c, one), 1);
  const std::map<std::string, double> billions = {{"gpt2-large", 0.774},
                                                  {"gpt2-xl", 1.56},
                                                  {"gpt3-13b", 12.9},
                                                  {"gpt3-175b", 174.6},
                                                  {"llama2-7b", 6.74},
                                                  {"llama2-13b", 13.0},
                                                  {"llama2-70b", 69.0},
                                                  {"llama3-8b", 8.03},
                                                  {"llama3-70b", 70.6},
                                                  {"mistral-7b", 7.24},
                                                  {"tinyllama", 1.10},
                                                  {"char-llama", 0.404e-3},
                                                  {"qwen3-8b", 8.19},
                                                  {"gemma2-9b", 9.24},
                                                  {"gpt-j-6b", 6.05},
                                                  {"falcon-7b", 6.92},
                                                  {"phi3", 3.82},
                                                  {"glm4", 9.40},
                                                  {"gemma3", 11.77},
                                                  // Without BERT's pooler; SD3's 2.03 with its
                                                  // table of positions, 0.057, and 0.031 that its
                                                  // last layer leaves out.
                                                  {"bert-large", 0.334},
                                                  {"vit-l", 0.3043},
                                                  {"sd3-medium", 2.116},
                                                  {"mixtral-8x7b", 46.7},
                                                  {"qwen3-30b-a3b", 30.5},
                                                  {"deepseek-v2-lite", 15.7},
                                                  {"deepseek-v3", 671.0},
                                                  {"mamba-2.8b", 2.77},
                                                  {"mamba2-2.7b", 2.70},
                                                  {"jamba", 51.6},
                                                  {"t5-large", 0.738}};
  ASSERT_TRUE(billions.contains(GetParam())) << "a new model: write its size here";
  const double expected = billions.at(GetParam());
  EXPECT_NEAR(static_cast<double>(total) * 1e-9, expected, 0.01 * expected);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedModel, testing::ValuesIn(model_names()), [](const auto& p) {
  std::string name = p.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(ReadModel, FillsWhatTheFileLeavesOut) {
  const ModelConfig c = read_model(kLlamaFile);
  EXPECT_EQ(c.Hkv, 4);
  EXPECT_EQ(c.d, 16);
  EXPECT_EQ(c.sliding_window, 0);
  EXPECT_EQ(c.rope_theta, 10000.0);
  EXPECT_FALSE(c.qkv_bias || c.out_bias || c.mlp_bias || c.tied_embeddings);
  EXPECT_EQ(c.norm_eps, 1e-6);
}

TEST(ReadModel, ReadsEveryField) {
  const ModelConfig c =
      read_model(std::string(kLlamaFile) +
                 "Hkv = 2\nd = 32\nsliding_window = 7\nrope_theta = 5e5\nqkv_bias = true\n"
                 "out_bias = true\nmlp_bias = true\ntied_embeddings = true\n");
  EXPECT_EQ(c.name, "m");
  EXPECT_EQ(c.title, "M");
  EXPECT_TRUE(c.is_all("llama"));
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.D, 64);
  EXPECT_EQ(c.F, 96);
  EXPECT_EQ(c.H, 4);
  EXPECT_EQ(c.Hkv, 2);
  EXPECT_EQ(c.d, 32);
  EXPECT_EQ(c.V, 100);
  EXPECT_EQ(c.max_positions, 128);
  EXPECT_EQ(c.sliding_window, 7);
  EXPECT_EQ(c.rope_theta, 5e5);
  EXPECT_TRUE(c.qkv_bias && c.out_bias && c.mlp_bias && c.tied_embeddings);
}

TEST(ReadModel, ReadsTheGptFamily) {
  const ModelConfig c = read_model(kGpt);
  EXPECT_TRUE(c.is_all("gpt"));
}

TEST(ReadModel, NormAndActivationBelongToTheFamily) {
  InputProblem p =
      problem_of([] { read_model(model_with(kLlamaFile, "norm", "norm = \"layernorm\"")); });
  EXPECT_EQ(p.field, "norm");
  EXPECT_EQ(p.allowed, "rmsnorm");
  p = problem_of([] { read_model(model_with(kGpt, "activation", "activation = \"swiglu\"")); });
  EXPECT_EQ(p.field, "activation");
  EXPECT_EQ(p.allowed, "gelu-tanh");
}

TEST(ReadModel, EveryRequiredFieldIsMissedByName) {
  EXPECT_EQ(problem_of([] { read_model("title = \"M\"\n"); }).field, "block");
  for (const char* key : {"title", "source", "layers", "D", "F", "H", "V", "max_positions", "norm",
                          "norm_eps", "activation"}) {
    const InputProblem p = problem_of([&] { read_model(model_with(kLlamaFile, key, "")); });
    EXPECT_EQ(p.field, key);
    EXPECT_EQ(p.message, "the field is missing");
  }
}

TEST(ReadModel, HeadsMustDivideTheWidthUnlessTheHeadWidthIsGiven) {
  const std::string text = model_with(kLlamaFile, "H", "H = 5");
  const InputProblem p = problem_of([&] { read_model(text); });
  EXPECT_EQ(p.field, "H");
  EXPECT_EQ(p.line, 8);
  EXPECT_EQ(p.value, "5");
  EXPECT_EQ(read_model(text + "d = 16\n").d, 16);
}

TEST(ReadModel, RulesAcrossFieldsKeepTheLine) {
  InputProblem p = problem_of([] { read_model(std::string(kLlamaFile) + "Hkv = 3\n"); });
  EXPECT_EQ(p.field, "Hkv");
  EXPECT_EQ(p.line, 14);
  p = problem_of([] { read_model(model_with(kLlamaFile, "norm", "norm = \"layernorm\"")); });
  EXPECT_EQ(p.field, "norm");
  EXPECT_EQ(p.line, 11);
}

TEST(ReadModel, RopeInTheGptFamilyIsRefused) {
  EXPECT_EQ(problem_of([] { read_model(std::string(kGpt) + "rope_theta = 1e4\n"); }).field,
            "rope_theta");
}

class LoadModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("load_model_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

constexpr const char* kHf = R"( {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4,
  "vocab_size": 100, "n_positions": 32})";

TEST_F(LoadModel, TellsTomlFromJsonByTheEndingOrTheFirstCharacter) {
  EXPECT_TRUE(load_model(write("a.toml", kLlamaFile)).is_all("llama"));
  EXPECT_TRUE(load_model(write("config.json", kHf)).is_all("gpt"));
  EXPECT_TRUE(load_model(write("model", kLlamaFile)).is_all("llama"));
  EXPECT_TRUE(load_model(write("blob", kHf)).is_all("gpt"));
}

TEST_F(LoadModel, ErrorsNameTheFile) {
  const std::string path = write("a.toml", model_with(kLlamaFile, "D", "D = -64"));
  const InputProblem p = problem_of([&] { load_model(path); });
  EXPECT_EQ(p.file, path);
  EXPECT_EQ(p.line, 6);
  EXPECT_EQ(p.column, 5);
}

// A shipped model is found by the name of its source.
TEST_F(LoadModel, AnIdOfTheHubFindsTheModelMadeOfIt) {
  EXPECT_EQ(load_model("Qwen/Qwen3-8B").name, "qwen3-8b");
  EXPECT_EQ(load_model("qwen/qwen3-8b").name, "qwen3-8b");
  EXPECT_EQ(load_model("stabilityai/stable-diffusion-3-medium-diffusers").name, "sd3-medium");
  EXPECT_EQ(load_model("google/gemma-3-12b-pt").name, "gemma3");
  const InputProblem p = problem_of([] { load_model("Qwen/Qwen3-7B"); });
  EXPECT_NE(p.message.find("save its config.json"), std::string::npos) << p.message;
  EXPECT_EQ(p.nearest, "Qwen/Qwen3-8B");
  // Paths stay paths: of a folder that is there, of a file with an ending.
  EXPECT_EQ(problem_of([&] { load_model((folder_ / "none").string()); }).message, "no such file");
  EXPECT_EQ(problem_of([] { load_model("nowhere/config.json"); }).message, "no such file");
  EXPECT_EQ(problem_of([] { load_model("../none"); }).message, "no such file");
}

TEST_F(LoadModel, ACheckpointFolderPointsToItsConfig) {
  const std::string config = write("config.json", kHf);
  const InputProblem p = problem_of([&] { load_model(folder_.string()); });
  EXPECT_EQ(p.message, "is a folder");
  EXPECT_EQ(p.nearest, config);
}

}  // namespace
}  // namespace fuseline
