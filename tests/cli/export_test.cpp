// export, program measure and program export through the whole program: what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/run/known_gpu.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kTwice =
    "fuse 1\nsize M = 256, N = 128\ninput x[M,N]\noutput y[M,N]\n\nprogram twice\n"
    "  for each tile of [M, N]\n  x = load x[M,N]\n  z = x * 2\n  store y[M,N] = z\n";

class Export : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fuseline-export-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream(program()) << kTwice;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string program() const { return (folder_ / "twice.fuse").string(); }
  [[nodiscard]] std::string to(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static bool has_toolkit() {
    try {
      const cuda::Compiler compiler;
      return true;
    } catch (const MissingError&) {
      return false;
    }
  }

  fs::path folder_;
};

TEST_F(Export, MakesAFolderAndReplacesItWhenForced) {
  const std::vector<std::string> command = {"program", "export", program(), "--gpu",
                                            "a100",    "--to",   to("out")};
  const CliRun first = cli(command);
  if (!has_toolkit()) {
    EXPECT_EQ(first.status, 3);
    EXPECT_THAT(first.err, HasSubstr("toolkit"));
    EXPECT_FALSE(fs::exists(to("out")));
    return;
  }
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("operator twice: 1 launches, 1 inputs, 1 outputs"));
  for (const char* name : {"kernels.json", "README.md", "fuseline_kernels.py"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / name)) << name;
  EXPECT_EQ(entries(), 2U);  // nothing half-written beside it
  const CliRun again = cli(command);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("--force"));
  std::vector<std::string> forced = command;
  forced.emplace_back("--force");
  EXPECT_EQ(cli(forced).status, 0);
}

TEST_F(Export, NeverReplacesWhatIsNotItsOwn) {
  fs::create_directories(to("notes"));
  std::ofstream(folder_ / "notes" / "thesis.txt") << "years of work";
  for (const bool force : {false, true}) {
    std::vector<std::string> command = {"program", "export", program(), "--to", to("notes")};
    if (force) command.emplace_back("--force");
    const CliRun run = cli(command);
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.err, HasSubstr("--to"));
    EXPECT_TRUE(fs::exists(folder_ / "notes" / "thesis.txt"));
  }
}

TEST_F(Export, RefusesWhatItCannotDo) {
  EXPECT_THAT(cli({"program", "export", program()}).err, HasSubstr("--to"));
  EXPECT_EQ(cli({"program", "export", program(), "--to", program()}).status, 2);
  const CliRun nowhere = cli({"program", "export", program(), "--to", to("no/such/place")});
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("there is no folder " + to("no/such")));
  EXPECT_EQ(cli({"export", "--model", "llama2-7b"}).status, 2);
  const CliRun several = cli({"export", "--policy", "coda,eager", "--to", to("out")});
  EXPECT_EQ(several.status, 2);
  EXPECT_THAT(several.err, HasSubstr("--policy"));
  EXPECT_EQ(cli({"export", "--layers", "0", "--to", to("out")}).status, 2);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Export, MeasureSaysThatItNeedsAGpu) {
  try {
    (void)cuda::device_here();
    GTEST_SKIP() << "a GPU is here";
  } catch (const MissingError&) {
  }
  const CliRun run = cli({"program", "measure", program()});
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, HasSubstr("fuseline: not available"));
}

TEST_F(Export, PredictsTheSameMathsWithoutFusion) {
  const CliRun alone = cli({"program", "predict", program(), "--gpu", "h200"});
  EXPECT_EQ(alone.out.find("without fusion"), std::string::npos) << "one line is one kernel";
  std::ofstream(program()) << "fuse 1\nsize M = 2048, N = 4096\ninput x[M,N]\noutput y[M,N]\n\n"
                              "program twice\n  for each tile of [M, N]\n  x = load x[M,N]\n"
                              "  a = x * 2\n  b = a + x\n  store y[M,N] = b\n";
  const CliRun run = cli({"program", "predict", program(), "--gpu", "h200"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("the same maths without fusion, 2 kernels"));
}

}  // namespace
}  // namespace fuseline
