#include "tests/error/refused_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/config/scenario.h"
#include "sim/gpu/gpu.h"
#include "sim/judge/audit/claim_file.h"
#include "sim/judge/published.h"
#include "sim/selection/saved_prediction.h"
#include "tests/error/run_program.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(FUSELINE_SOURCE_DIR) / "tests" / "error"; }

// The file in the place where a user would give it.
std::vector<std::string> arguments_for(const RefusedFile& file) {
  const std::string path = (folder() / file.path).string();
  if (file.path.starts_with("models/")) return {"predict", "--model", path, "--gpu", "h200"};
  if (file.path.starts_with("gpus/")) return {"predict", "--model", "tinyllama", "--gpu", path};
  if (file.path.starts_with("claims/")) return {"audit", "--claims", path};
  if (file.path.starts_with("published/")) return {"judge", path};
  if (file.path.starts_with("predictions/")) return {"diff", path, path};
  return {"predict", path};
}

void load(const RefusedFile& file) {
  const std::string path = (folder() / file.path).string();
  if (file.path.starts_with("models/")) {
    load_model(path);
  } else if (file.path.starts_with("gpus/")) {
    load_gpu(path);
  } else if (file.path.starts_with("claims/")) {
    audit::load_claims(path);
  } else if (file.path.starts_with("published/")) {
    load_published_figures(path);
  } else if (file.path.starts_with("predictions/")) {
    load_gpu(load_predictions(path).gpu);
  } else {
    const Scenario scenario = load_scenario(path);
    load_model(scenario.model);
    load_gpu(scenario.gpu);
  }
}

void expect_parts(const std::string& message, const RefusedFile& file) {
  for (const std::string& part : file.parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << message;
  }
}

class Refused : public testing::TestWithParam<RefusedFile> {};

TEST_P(Refused, WithAMessageThatHelps) {
  ASSERT_TRUE(fs::exists(folder() / GetParam().path));
  try {
    load(GetParam());
    FAIL() << "accepted";
  } catch (const InputError& error) {
    expect_parts(error.what(), GetParam());
  }
}

TEST_P(Refused, ByTheProgramWithStatusTwoAndNothingWritten) {
  const ProgramRun run = run_program(arguments_for(GetParam()));
  if (!run.available) GTEST_SKIP() << "the program is not built";
  EXPECT_EQ(run.status, 2) << run.error;
  EXPECT_EQ(run.output, "");
  EXPECT_TRUE(run.files_left.empty()) << run.files_left.front();
  expect_parts(run.error, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Files, Refused, testing::ValuesIn(refused_files()), [](const auto& p) {
  std::string name = p.param.path;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(RefusedFiles, EveryFileIsListedOnce) {
  std::set<std::string> listed;
  for (const RefusedFile& file : refused_files()) {
    EXPECT_TRUE(listed.insert(file.path).second) << file.path;
    EXPECT_FALSE(file.parts.empty()) << file.path;
  }
  for (const char* kind : {"models", "gpus", "scenarios", "claims", "published", "predictions"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder() / kind)) {
      EXPECT_TRUE(listed.contains(kind + ("/" + entry.path().filename().string())))
          << entry.path() << " has no expected message";
    }
  }
}

}  // namespace
}  // namespace fuseline
