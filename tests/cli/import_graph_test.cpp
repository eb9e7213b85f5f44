// fuseline import graph: what goes to standard output, to the file and to messages, and what is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

std::string graph(const std::string& name) {
  return std::string(FUSELINE_SOURCE_DIR) + "/tests/model/import/graphs/" + name + ".json";
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ImportGraphCommand, PrintsABlockThatPredictReads) {
  const CliRun printed = cli({"import", "graph", graph("qwen3"), "--name", "mine"});
  ASSERT_EQ(printed.status, 0) << printed.err;
  EXPECT_THAT(printed.out, StartsWith("fuseline.block/1\n"));
  EXPECT_THAT(printed.out, HasSubstr("block mine("));
  EXPECT_THAT(printed.err, HasSubstr("fuseline: note: One product has the weights"));

  const std::string file = testing::TempDir() + "mine.block";
  const CliRun written =
      cli({"import", "graph", graph("qwen3"), "--name", "mine", "--output", file});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(text_of(file), printed.out);

  // Alone it has the example's sizes and its own eps; a model gives it others.
  const CliRun alone = cli({"explain", "--block", file, "--seq", "9", "--policy", "unfused"});
  ASSERT_EQ(alone.status, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("[9, 32]"));
  EXPECT_THAT(alone.out, HasSubstr("m + 1e-06"));
  const std::vector<std::string> with_model = {"predict",  "--model", "qwen3-8b", "--gpu", "h200",
                                               "--policy", "coda",    "--format", "csv"};
  std::vector<std::string> with_block = with_model;
  with_block.insert(with_block.end(), {"--block", file});
  const std::vector<std::string> own = lines_of(cli(with_model).out);
  const std::vector<std::string> imported = lines_of(cli(with_block).out);
  ASSERT_EQ(own.size(), 2U);
  ASSERT_EQ(imported.size(), 2U);
  // All but the model's name, which says that the block is another one.
  EXPECT_EQ(own[1].substr(own[1].find(',')), imported[1].substr(imported[1].find(',')));
  fs::remove(file);
}

TEST(ImportGraphCommand, RefusesWithStatusTwoAndWritesNothing) {
  const std::string file = testing::TempDir() + "never.block";
  const CliRun unknown = cli({"import", "graph", graph("strange"), "--output", file});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, HasSubstr("aten.cumprod.default (strange.py, line 12)"));
  EXPECT_FALSE(fs::exists(file));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"import", "graph"},
        {"import", "graph", "no/such.json"},
        {"import", "graph", graph("llama"), "--mask", "casual"},
        {"import", "graph", graph("llama"), graph("gpt2")},
        {"import", "graph", graph("llama"), "--output", "/proc/never/a.block"}}) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << args.back() << run.err;
    EXPECT_EQ(run.out, "");
  }
  EXPECT_THAT(cli({"import", "graph", graph("llama"), "--mask", "casual"}).err,
              HasSubstr("did you mean 'causal'"));
}

TEST(ImportGraphCommand, LeavesTheOtherImportsAsTheyWere) {
  EXPECT_THAT(cli({"import", "--help"}).out, HasSubstr("fuseline import graph"));
  EXPECT_EQ(cli({"import", "ncu", "--help"}).out, cli({"import", "--help"}).out);
  EXPECT_THAT(cli({"import", "graph", "--help"}).out, HasSubstr("--separate"));
}

// The archive that torch.export.save() makes of a layer, with another file for the weights.
TEST(ImportGraphCommand, ReadsTheProgramInAnArchive) {
  const std::string program = text_of(graph("pytorch/llama.program"));
  const std::string file = testing::TempDir() + "layer.pt2";
  fs::remove(file);
  zip_t* archive = zip_open(file.c_str(), ZIP_CREATE, nullptr);
  const std::string weights(1000, 'w');
  for (const auto& [name, text] :
       {std::pair{"layer/data/weights/weight_0", &weights}, {"layer/models/model.json", &program}})
    zip_file_add(archive, name, zip_source_buffer(archive, text->data(), text->size(), 0),
                 ZIP_FL_ENC_UTF_8);
  ASSERT_EQ(zip_close(archive), 0);

  const CliRun of_archive = cli({"import", "graph", file, "--name", "mine"});
  EXPECT_EQ(of_archive.status, 0) << of_archive.err;
  // All but the first lines, which name the file.
  const std::string of_program =
      cli({"import", "graph", graph("pytorch/llama.program"), "--name", "mine"}).out;
  const auto body = [](const std::string& text) { return text.substr(text.find("# One product")); };
  EXPECT_EQ(body(of_archive.out), body(of_program));
  EXPECT_THAT(of_archive.out, StartsWith("fuseline.block/1\n"));
  fs::remove(file);
}

}  // namespace
}  // namespace fuseline
