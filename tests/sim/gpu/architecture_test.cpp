#include "sim/gpu/architecture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/toml_file.h"
#include "sim/gpu/constant_table.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& name) {
  std::ifstream in(data_dir() / "architectures" / (name + ".toml"));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Loads the text from a file of its own.
std::shared_ptr<const Architecture> load(const std::string& text) {
  const fs::path path = fs::path(testing::TempDir()) /
                        ("fuseline-architecture-test-" + std::to_string(getpid()) + ".toml");
  std::ofstream(path) << text;
  return load_architecture(path.string());
}

InputProblem architecture_problem(const std::string& text) {
  try {
    load(text);
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// An heir of Hopper with these lines more.
std::string heir(const std::string& lines) {
  return "name = \"heir\"\ntitle = \"Heir\"\ninherits = \"hopper\"\n"
         "compute_capabilities = [\"9.9\"]\nfeatures = [\"mma_sync\"]\n" +
         lines;
}

class ShippedArchitecture : public testing::TestWithParam<std::string> {};

TEST_P(ShippedArchitecture, GivesEveryConstantInItsRangeWithItsSource) {
  const auto a = load_architecture(GetParam());
  EXPECT_EQ(a->name, GetParam());
  for (const ConstantInfo& c : constant_table()) {
    const ConstantOrigin& origin = a->origins.at(c.name);
    EXPECT_GE(origin.number.value, origin.least) << c.name;
    EXPECT_LE(origin.number.value, origin.most) << c.name;
    EXPECT_EQ(origin.number.unit, c.unit) << c.name;
    EXPECT_FALSE(origin.number.source.empty()) << c.name;
    EXPECT_NEAR(value_of(c, a->constants), origin.number.value, 1e-9) << c.name;
    EXPECT_EQ(origin.number.status == "inherited", origin.file != a->name) << c.name;
  }
  EXPECT_FALSE(a->tiles.library.empty());
  EXPECT_FALSE(a->tiles.own.empty());
}

INSTANTIATE_TEST_SUITE_P(All, ShippedArchitecture, testing::ValuesIn(architecture_names()),
                         [](const auto& p) {
                           std::string name = p.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Architecture, AnHeirSaysWhatItInherits) {
  const auto a =
      load(heir("[constants.gemm]\nstart_us = { value = 3, unit = \"us\", least = 1, most = 9, "
                "source = \"s\", "
                "date = \"2026\", status = \"fitted\" }\n"));
  EXPECT_EQ(a->inherits, "hopper");
  EXPECT_DOUBLE_EQ(to_us(a->constants.gemm.start), 3);
  EXPECT_EQ(a->origins.at("gemm.start_us").number.status, "fitted");
  EXPECT_EQ(a->origins.at("gemm.start_us").most, 9);
  const ConstantOrigin& other = a->origins.at("gemm.tensor_fraction");
  EXPECT_EQ(other.number.status, "inherited");
  EXPECT_EQ(other.first_status, "fitted");
  EXPECT_EQ(other.file, "hopper");
  EXPECT_EQ(a->tiles.library, load_architecture("hopper")->tiles.library);
  EXPECT_EQ(a->features, std::set<Feature>{Feature::mma_sync}) << "features are never inherited";
}

TEST(Architecture, AMissingConstantIsNamed) {
  const std::string hopper = text_of("hopper");
  const std::size_t line = hopper.find("\nbarrier_us = ");
  ASSERT_NE(line, std::string::npos);
  const InputProblem p =
      architecture_problem(hopper.substr(0, line) + hopper.substr(hopper.find('\n', line + 1)));
  EXPECT_EQ(p.field, "constants.sync.barrier_us");
  EXPECT_EQ(p.message, "the constant is missing");
}

TEST(Architecture, ConstantsAreChecked) {
  const auto problem = [](const std::string& constant) {
    return architecture_problem(heir("[constants.gemm]\n" + constant + "\n"));
  };
  const std::string rest = ", source = \"s\", date = \"2026\", status = \"assumed\" }";
  InputProblem p = problem("start_us = { value = 10, unit = \"us\", least = 1, most = 9" + rest);
  EXPECT_EQ(p.field, "constants.gemm.start_us.value");
  EXPECT_EQ(p.allowed, "a number from 1 to 9");
  EXPECT_GT(p.line, 6);
  p = problem("start_us = { value = 2, unit = \"ms\", least = 1, most = 9" + rest);
  EXPECT_EQ(p.field, "constants.gemm.start_us.unit");
  EXPECT_EQ(p.allowed, "us");
  // A formula divides by it.
  p = problem("sm_fetch_bytes_per_cycle = { value = 2, unit = \"B/clock\", least = 0, most = 9" +
              rest);
  EXPECT_EQ(p.field, "constants.gemm.sm_fetch_bytes_per_cycle.least");
  p = problem("thin_rows = { value = 2.5, unit = \"rows\", least = 0, most = 9" + rest);
  EXPECT_EQ(p.field, "constants.gemm.thin_rows.value");
  p = problem("start_s = { value = 2, unit = \"us\", least = 1, most = 9" + rest);
  EXPECT_EQ(p.field, "constants.gemm.start_s");
  EXPECT_EQ(p.nearest, "start_us");
  p = problem("start_us = { value = 2, unit = \"us\", least = 1" + rest);
  EXPECT_EQ(p.field, "constants.gemm.start_us.most");
  p = problem(
      "start_us = { value = 2, unit = \"us\", least = 1, most = 9, source = \"s\", date = "
      "\"2026\", status = \"inherited\" }");
  EXPECT_EQ(p.field, "constants.gemm.start_us.status") << "only what is left out is inherited";
}

TEST(Architecture, TilesAndFeaturesAreChecked) {
  const std::string ampere = text_of("ampere");
  EXPECT_EQ(architecture_problem(replaced(ampere, "n = 256,", "n = 0,")).field,
            "tiles.library[0].n");
  EXPECT_EQ(architecture_problem(replaced(ampere, "\"mma_sync\"", "\"mma_snyc\"")).nearest,
            "mma_sync");
  EXPECT_EQ(architecture_problem(replaced(ampere, "\"hopper\"", "\"hoper\"")).nearest, "hopper");
  EXPECT_EQ(architecture_problem(replaced(text_of("hopper"), "[tiles]", "[tiless]")).nearest,
            "tiles");
}

TEST(Architecture, FilesMayNotInheritInACircle) {
  const std::string circle = replaced(heir(""), "\"heir\"", "\"hopper\"");
  EXPECT_EQ(architecture_problem(circle).field, "inherits");
}

// A folder with files that name each other by paths.
class ArchitectureFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ / "below"); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  // What the field `architecture` of a file in the folder names.
  [[nodiscard]] std::string named(const std::string& written) const {
    const TomlTable table =
        TomlTable::parse("architecture = \"" + written + "\"\n", (folder_ / "gpu.toml").string());
    return architecture_of_field(table, "architecture");
  }
  fs::path folder_ =
      fs::path(testing::TempDir()) / ("fuseline-architecture-files-" + std::to_string(getpid()));
};

TEST_F(ArchitectureFiles, AreNamedByPathsThatStartAtTheFileThatNamesThem) {
  write("below/heir.toml", heir(""));
  EXPECT_EQ(named("below/heir.toml"), (folder_ / "below/heir.toml").string());
  EXPECT_EQ(named("./below/../below/heir.toml"), (folder_ / "below/heir.toml").string());
  EXPECT_EQ(named((folder_ / "below/heir.toml").string()), (folder_ / "below/heir.toml").string());
  EXPECT_EQ(named("hopper"), "hopper");
  EXPECT_EQ(load_architecture(named("below/heir.toml"))->name, "heir");
}

TEST_F(ArchitectureFiles, InheritFromFilesByPath) {
  write("below/heir.toml", heir(""));
  write("child.toml",
        replaced(replaced(heir(""), "\"heir\"", "\"child\""), "\"hopper\"", "\"below/heir.toml\""));
  const auto child = load_architecture((folder_ / "child.toml").string());
  EXPECT_EQ(child->inherits, "heir");
  EXPECT_EQ(child->origins.at("gemm.start_us").file, "hopper");
}

TEST_F(ArchitectureFiles, ACircleOfPathsIsRefusedHoweverTheyAreWritten) {
  write("a.toml",
        replaced(replaced(heir(""), "\"heir\"", "\"a\""), "\"hopper\"", "\"below/../b.toml\""));
  write("b.toml", replaced(replaced(heir(""), "\"heir\"", "\"b\""), "\"hopper\"", "\"./a.toml\""));
  try {
    load_architecture((folder_ / "a.toml").string());
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "inherits");
    EXPECT_EQ(error.problem().value, "./a.toml");
  }
}

// A folder of data files of its own, for as long as it lives.
class OwnData {
 public:
  OwnData() : folder_(fs::path(testing::TempDir()) / ("own-data-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    for (const char* part : {"models", "gpus", "architectures"})
      fs::copy(data_dir() / part, folder_ / part, fs::copy_options::recursive);
    if (const char* before = getenv("FUSELINE_DATA")) before_ = before;
    setenv("FUSELINE_DATA", folder_.c_str(), 1);
  }
  ~OwnData() {
    before_ ? setenv("FUSELINE_DATA", before_->c_str(), 1) : unsetenv("FUSELINE_DATA");
    fs::remove_all(folder_);
  }
  OwnData(const OwnData&) = delete;
  OwnData& operator=(const OwnData&) = delete;
  // Later than all that was written before, whatever the clock's steps.
  void write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / "architectures" / (name + ".toml");
    std::ofstream(path) << text;
    fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(++writes_));
  }

 private:
  fs::path folder_;
  std::optional<std::string> before_;
  int writes_ = 0;
};

TEST(Architecture, AShippedFileIsReadAgainOnlyAfterItOrItsParentChanged) {
  const std::string hopper = text_of("hopper");
  const auto shipped = load_architecture("hopper");
  EXPECT_EQ(load_architecture("hopper"), shipped) << "it was read already";
  OwnData data;
  EXPECT_NE(load_architecture("hopper"), shipped) << "another folder's file";
  data.write("heir", heir(""));
  EXPECT_EQ(load_architecture("heir")->constants.gemm.tensor_fraction,
            shipped->constants.gemm.tensor_fraction);
  data.write("heir", replaced(heir(""), "title = \"Heir\"", "title = \"Another\""));
  EXPECT_EQ(load_architecture("heir")->title, "Another");
  data.write("hopper", replaced(hopper, "value = 0.86", "value = 0.85"));
  EXPECT_EQ(load_architecture("heir")->constants.gemm.tensor_fraction, 0.85);
}

TEST(Architecture, UnknownNamesGiveTheNearest) {
  try {
    load_architecture("hoper");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "architecture");
    EXPECT_EQ(error.problem().nearest, "hopper");
  }
}

}  // namespace
}  // namespace fuseline
