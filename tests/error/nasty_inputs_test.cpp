// Inputs that once crashed the program, hung it, or were called a bug of ours: each ends at once,
// with the status of a user's mistake and one message that a terminal can show.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "tests/error/run_program.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

const fs::path kScenarios = fs::path(FUSELINE_SOURCE_DIR) / "scenarios";
const std::string kMeasured = (kScenarios / "measurements" / "h200-pytorch").string();

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

class NastyInputs : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return at(name);
  }
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  static void expect_refused(const std::vector<std::string>& arguments, const std::string& said,
                             int status = 2) {
    const ProgramRun run = run_program(arguments);
    if (!run.available) GTEST_SKIP() << "the program is not built";
    EXPECT_EQ(run.status, status) << arguments[0] << ": " << run.error;
    EXPECT_EQ(run.output, "");
    EXPECT_TRUE(run.files_left.empty()) << run.files_left.front();
    EXPECT_NE(run.error.find(said), std::string::npos) << run.error.substr(0, 2000);
    EXPECT_LT(run.error.size(), 6000U);
    for (const char c : run.error) {
      ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << run.error;
    }
  }

  TemporaryFolder folder_{"nasty-inputs"};
};

TEST_F(NastyInputs, DeepJson) {
  const std::string file = write(
      "deep.json", "{\"schema\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}");
  expect_refused({"compare", file, kMeasured}, "nested too deeply");
  expect_refused({"predict", "--model", file, "--gpu", "h200"}, "nested too deeply");
}

TEST_F(NastyInputs, DeepToml) {
  std::string text = "title = \"t\"\nx = ";
  for (int i = 0; i < 250; ++i) text += "{ a" + repeated(".a", 900) + " = [\n";
  const std::string file = write("deep.toml", text + "1" + repeated("]}", 250));
  expect_refused({"predict", file}, "nested too deeply");
  expect_refused({"predict", "--model", file, "--gpu", "h200"}, "nested too deeply");
  expect_refused({"gemm", "--m", "1", "--n", "1", "--k", "1", "--gpu", file}, "nested too deeply");
  expect_refused({"audit", "--claims", file}, "nested too deeply");
}

// Its blocks are of one model.
TEST_F(NastyInputs, BandsWithoutAModelToLeaveIn) {
  expect_refused(
      {"calibrate", "--bands", (kScenarios / "measurements" / "h200-codes-fuseline").string()},
      "no rows of other models");
}

TEST_F(NastyInputs, NumbersBeyondADouble) {
  const std::string file =
      write("p.json",
            R"({"schema":"fuseline.prediction/1","model":"m","predictions":[{"time_us":1e400}]})");
  expect_refused({"compare", file, kMeasured}, "a number in the file is too large");
}

TEST_F(NastyInputs, AClaimWithAHugeBatch) {
  const std::string file =
      write("huge.toml",
            "id = \"c\"\nstatement = \"s\"\nkind = \"speed-up\"\n[source]\ntitle = \"t\"\ndate = "
            "\"2026\"\n[figure]\nfactor = { value = 1.5, unit = \"x\" }\n[setting]\nmodel = "
            "\"tinyllama\"\ngpu = \"h200\"\nphase = \"forward\"\nbatch = 16777216\n");
  expect_refused({"audit", "--claims", file}, "no combination of the choices can be tried");
}

TEST_F(NastyInputs, NamedPipes) {
  const std::string pipe = at("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  fs::create_directory(at("folder"));
  ASSERT_EQ(mkfifo(at("folder/block.csv").c_str(), 0666), 0);
  const std::vector<std::vector<std::string>> readers = {
      {"predict", pipe},
      {"predict", "--model", pipe, "--gpu", "h200"},
      {"predict", "--model", "tinyllama", "--gpu", pipe},
      {"compare", pipe},
      {"compare", at("folder")},
      {"compare", pipe, kMeasured},
      {"audit", "--claims", pipe},
      {"calibrate", pipe, "--gpu", "h200"},
      {"import", pipe, "--output", "out"},
      {"gemm", "--m", "1", "--n", "1", "--k", "1", "--gpu", pipe}};
  for (const auto& reader : readers) expect_refused(reader, "is a named pipe");
  expect_refused(
      {"predict", "--model", "tinyllama", "--gpu", "h200", "--policy", "coda", "--output", pipe},
      "no program reads from it");
}

TEST_F(NastyInputs, LinksInACircle) {
  fs::create_symlink("b", at("a"));
  fs::create_symlink("a", at("b"));
  const std::string loop = at("a");
  for (const std::vector<std::string>& reader :
       std::vector<std::vector<std::string>>{{"predict", loop},
                                             {"predict", "--model", loop, "--gpu", "h200"},
                                             {"predict", "--model", "tinyllama", "--gpu", loop},
                                             {"compare", loop},
                                             {"audit", "--claims", loop},
                                             {"import", loop, "--output", "out"},
                                             {"lab", "check", "1", "--dir", loop},
                                             {"lab", "report", "--dir", loop}}) {
    expect_refused(reader, "Too many levels of symbolic links");
  }
}

TEST_F(NastyInputs, NoFolderForTemporaries) {
  const ProgramRun made = run_program({"lab", "start", "3", "--dir", at("lab")});
  if (!made.available) GTEST_SKIP() << "the program is not built";
  ASSERT_EQ(made.status, 0) << made.error;
  const ProgramRun run =
      run_program({"lab", "check", "3", "--dir", at("lab")}, "TMPDIR=" + at("none"));
  EXPECT_EQ(run.status, 3) << run.error;
  EXPECT_NE(run.error.find("TMPDIR = '" + at("none")), std::string::npos) << run.error;
}

TEST_F(NastyInputs, ValuesThatATerminalObeysAndEndlessOnes) {
  const std::string nasty = "\x1b[2J\x1b]0;title\x07\n\xff" + std::string(40'000, 'a');
  expect_refused({nasty}, "\\x1b[2J");
  expect_refused({"predict", "--" + nasty}, "\\x1b[2J");
  expect_refused({"predict", "--model", nasty}, "\\x1b[2J");
  expect_refused({"predict", "--policy", nasty + "," + nasty}, "\\x1b[2J");
  expect_refused({"predict", "--seq", nasty}, "\\x1b[2J");
  expect_refused({"predict", nasty}, "\\x1b[2J");
  expect_refused({"sweep", "--policy", "coda," + nasty + "," + nasty}, "\\x1b[2J");
  const std::string file =
      write("m.toml", "title = \"t\"\nmodel = \"a\\u001b[2Jb\"\ngpu = \"h200\"\n");
  expect_refused({"predict", file}, "a\\x1b[2Jb");
}

TEST_F(NastyInputs, SizesThatTakeMinutes) {
  expect_refused({"predict", "--model", "llama2-7b", "--gpu", "h100", "--policy", "unfused",
                  "--seq", "524288"},
                 "--seq = '524288': unfused has 539 million GEMM tiles");
  expect_refused({"predict", "--model", "llama2-7b", "--gpu", "h100", "--policy", "unfused",
                  "--phase", "decode", "--batch", "8192", "--context", "32768"},
                 "million GEMM tiles");
}

TEST_F(NastyInputs, ConstantsOutOfTheirRange) {
  std::ifstream in(kScenarios / "gpus" / "h200.toml");
  const std::string gpu{std::istreambuf_iterator<char>(in), {}};
  struct Constant {
    const char *name, *value, *unit;
  };
  for (const Constant& c : {Constant{"gemm.tensor_fraction", "-1", "1"},
                            {"gemm.start_us", "1e15", "us"},
                            {"gemm.hbm_fraction", "1e-300", "1"},
                            {"gemm.raster_group_tiles", "1e15", "1"},
                            {"gemm.overlap_exponent", "1e-300", "1"},
                            {"l2.capacity_fraction", "1e15", "1"},
                            {"power.idle_w", "-1", "W"},
                            {"power.tensor_pj_per_flop", "1e-300", "pJ/FLOP"},
                            {"power.clock_exponent", "-1", "1"},
                            {"power.reaction_ms", "0", "ms"},
                            {"stream.hbm_fraction", "1e-300", "1"},
                            {"launch.gap_us", "inf", "us"},
                            {"launch.gap_us", "0.2", "ms"}}) {
    const std::string file = write(
        "g.toml", gpu + "\n[calibration]\n" + c.name + " = { value = " + c.value + ", unit = \"" +
                      c.unit + "\", source = \"s\", date = \"2026\", status = \"fitted\" }\n");
    expect_refused({"predict", "--model", "tinyllama", "--gpu", file, "--fidelity", "roofline"},
                   std::string("calibration.") + c.name + ".");
  }
}

}  // namespace
}  // namespace fuseline
