#include "model/config/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/data_dir.h"
#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

class ScenarioFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        ("scenario_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Loads a file that starts with the three required fields.
  [[nodiscard]] Scenario load(const std::string& rest) const {
    return load_text("title = \"t\"\nmodel = \"llama2-7b\"\ngpu = \"h200\"\n" + rest);
  }
  [[nodiscard]] Scenario load_text(const std::string& text) const {
    std::ofstream(path()) << text;
    return load_scenario(path());
  }
  [[nodiscard]] InputProblem problem(const std::string& rest) const {
    try {
      static_cast<void>(load(rest));
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().file, path());
      return error.problem();
    }
    ADD_FAILURE() << "nothing was refused in " << rest;
    return {};
  }
  [[nodiscard]] std::string path() const { return (folder_ / "s.toml").string(); }

  fs::path folder_;
};

TEST_F(ScenarioFile, NamesTheNumberFormatsOfWeightsAndCache) {
  const Scenario plain = load("dtype = \"fp16\"\nkv = \"fp16\"\n");
  EXPECT_FALSE(plain.workload.formats.cache.quantised());
  const Scenario s =
      load("phase = \"decode\"\ncontext = 64\nweights = \"int4:64\"\nkv = \"int8\"\n");
  EXPECT_EQ(s.workload.formats.weights.name(), "int4:64");
  EXPECT_EQ(s.workload.formats.cache.name(), "int8");
  EXPECT_EQ(load_text(scenario_text(s, folder_)).workload.formats, s.workload.formats);
  EXPECT_EQ(problem("kv = \"bf15\"\n").nearest, "bf16");
}

TEST_F(ScenarioFile, NamesTheNumberFormatOfActivations) {
  const Scenario s = load("weights = \"fp8\"\nactivations = \"fp8\"\n");
  EXPECT_EQ(s.workload.formats.activations.name(), "fp8");
  EXPECT_EQ(load_text(scenario_text(s, folder_)).workload.formats, s.workload.formats);
  EXPECT_EQ(problem("weights = \"fp8\"\nactivations = \"fp9\"\n").nearest, "fp8");
  EXPECT_EQ(problem("activations = \"fp8\"\n").field, "activations");
}

TEST_F(ScenarioFile, DefaultsAreOneForwardBlockUnderEveryPolicy) {
  const Scenario s = load("");
  EXPECT_EQ(s.title, "t");
  EXPECT_EQ(s.model, "llama2-7b");
  EXPECT_EQ(s.gpu, "h200");
  EXPECT_EQ(s.workload.phase, Phase::forward);
  EXPECT_EQ(s.workload.batch, 1);
  EXPECT_EQ(s.workload.seq, 2048);
  EXPECT_EQ(s.workload.context, 0);
  EXPECT_EQ(s.workload.dtype, Dtype::bf16);
  EXPECT_EQ(s.policies.size(), policies().size());
  EXPECT_EQ(s.fidelity, "hierarchy");
  EXPECT_EQ(s.layers, 1);
  EXPECT_TRUE(s.measurements.empty());
}

TEST_F(ScenarioFile, ReadsEveryField) {
  const Scenario s = load(
      "phase = \"decode\"\nbatch = 8\nseq = 4\ncontext = 512\ndtype = \"fp16\"\n"
      "policies = [\"coda\", \"eager\"]\nfidelity = \"roofline\"\nlayers = 12\n"
      "measurements = \"data/m\"\n");
  EXPECT_EQ(s.workload.phase, Phase::decode);
  EXPECT_EQ(s.workload.batch, 8);
  EXPECT_EQ(s.workload.seq, 4);
  EXPECT_EQ(s.workload.context, 512);
  EXPECT_EQ(s.workload.dtype, Dtype::fp16);
  EXPECT_EQ(s.policies, (std::vector<std::string>{"coda", "eager"}));
  EXPECT_EQ(s.fidelity, "roofline");
  EXPECT_EQ(s.layers, 12);
  EXPECT_EQ(s.measurements, folder_ / "data/m");
}

TEST_F(ScenarioFile, DecodeGeneratesOneTokenUnlessToldOtherwise) {
  EXPECT_EQ(load("phase = \"decode\"\ncontext = 16\n").workload.seq, 1);
}

TEST_F(ScenarioFile, AllLayersIsTheWholeModel) {
  EXPECT_EQ(load("layers = \"all\"\n").layers, std::nullopt);
  EXPECT_EQ(problem("layers = \"some\"\n").nearest, "all");
  EXPECT_EQ(problem("layers = 0\n").message, "is too small");
  EXPECT_EQ(problem("layers = 10001\n").message, "is too large");
  EXPECT_EQ(problem("layers = 1.5\n").message, "is not a whole number");
}

TEST_F(ScenarioFile, PathsStartAtTheFilesFolder) {
  const Scenario s = load_text("title = \"t\"\nmodel = \"m/config.json\"\ngpu = \"mine.toml\"\n");
  EXPECT_EQ(s.model, (folder_ / "m/config.json").string());
  EXPECT_EQ(s.gpu, (folder_ / "mine.toml").string());
}

TEST_F(ScenarioFile, UnknownWordsGiveTheNearest) {
  EXPECT_EQ(problem("phase = \"decoding\"\n").nearest, "decode");
  EXPECT_EQ(problem("fidelity = \"rooflin\"\n").nearest, "roofline");
  EXPECT_EQ(problem("dtype = \"bf15\"\n").nearest, "bf16");
  const InputProblem p = problem("policies = [\"eager\", \"code\"]\n");
  EXPECT_EQ(p.field, "policies");
  EXPECT_EQ(p.value, "code");
  EXPECT_EQ(p.line, 4);
  EXPECT_EQ(p.nearest, "coda");
  EXPECT_EQ(problem("sequence = 5\n").message, "unknown field");
}

TEST_F(ScenarioFile, PolicyListsHoldEachNameOnce) {
  EXPECT_EQ(problem("policies = []\n").message, "names no policy");
  EXPECT_EQ(problem("policies = [\"eager\", \"eager\"]\n").message, "is named twice");
}

TEST_F(ScenarioFile, ContextAndPhaseMustAgree) {
  InputProblem p = problem("phase = \"decode\"\nseq = 8\ncontext = 4\n");
  EXPECT_EQ(p.field, "context");
  EXPECT_EQ(p.line, 6);
  p = problem("phase = \"decode\"\n");
  EXPECT_EQ(p.field, "context");
  EXPECT_EQ(p.line, 0);
  p = problem("context = 4096\n");
  EXPECT_EQ(p.field, "context");
  EXPECT_NE(p.message.find("forward"), std::string::npos) << p.message;
}

TEST_F(ScenarioFile, RequiredFieldsAreMissedByName) {
  for (const char* key : {"title", "model", "gpu"}) {
    std::string text = "title = \"t\"\nmodel = \"m\"\ngpu = \"g\"\n";
    const std::size_t begin = text.find(std::string(key) + " =");
    text.erase(begin, text.find('\n', begin) - begin);
    try {
      static_cast<void>(load_text(text));
      ADD_FAILURE() << key;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().field, key);
      EXPECT_EQ(error.problem().message, "the field is missing");
    }
  }
}

class ShippedScenario : public testing::TestWithParam<std::string> {};

TEST_P(ShippedScenario, LoadsWithAModelThatIsThere) {
  const Scenario s = load_scenario(GetParam());
  EXPECT_FALSE(s.title.empty());
  EXPECT_NO_THROW(check_workload(s.workload, load_model(s.model)));
}

INSTANTIATE_TEST_SUITE_P(All, ShippedScenario, testing::ValuesIn(scenario_names()),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ScenarioNames, HoldTheDefaultOfRunSh) {
  const std::vector<std::string> names = scenario_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "llama2-7b-h100"), names.end());
  EXPECT_EQ(load_scenario("llama2-7b-h100").model, "llama2-7b");
}

}  // namespace
}  // namespace fuseline
