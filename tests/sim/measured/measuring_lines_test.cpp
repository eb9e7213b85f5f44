// Lines of a measurement that goes on: written, read in any pieces, kept as a folder.
#include "sim/measured/measuring_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/temporary_folder.h"
#include "sim/measured/measurement_table.h"

namespace fuseline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Measurements shipped() {
  return load_measurements((data_dir() / "measurements" / "h200-fuseline").string());
}

TEST(MeasuringLines, ARecordedRunIsReadInAnyPieces) {
  const Measurements all = shipped();
  std::string text = progress_line("inputs", 0.1) + "Last login: today\r\n";
  for (const MeasuredBlock& b : all.blocks) text += block_line(b);
  text += file_lines(all) + end_line(true, "");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, text.size()}) {
    MeasuringReader reader;
    for (std::size_t at = 0; at < text.size(); at += piece)
      reader.feed(std::string_view(text).substr(at, piece));
    const Measuring& seen = reader.seen();
    EXPECT_EQ(seen.what, "inputs");
    ASSERT_EQ(seen.blocks.size(), all.blocks.size());
    EXPECT_EQ(seen.blocks[1].block.execution, all.blocks[1].block.execution);
    EXPECT_NEAR(seen.blocks[1].time.median / all.blocks[1].time.median, 1, 1e-12);
    EXPECT_EQ(seen.blocks[1].hbm_read, all.blocks[1].hbm_read);
    EXPECT_EQ(seen.files.at("block.csv"), blocks_csv(all.blocks));
    EXPECT_EQ(seen.passed, true);
    EXPECT_THAT(seen.other, ElementsAre("Last login: today"));
  }
}

TEST(MeasuringLines, ALaterLineOfABlockTakesItsPlace) {
  MeasuredBlock block = shipped().blocks.front();
  MeasuringReader reader;
  reader.feed(block_line(block));
  block.time.median = block.time.median * 0.5;
  EXPECT_TRUE(reader.feed(block_line(block)));
  ASSERT_EQ(reader.seen().blocks.size(), 1U);
  EXPECT_NEAR(reader.seen().blocks[0].time.median / block.time.median, 1, 1e-12);
}

TEST(MeasuringLines, WhatIsNoneOfThemIsKeptAsItIs) {
  MeasuringReader reader;
  for (const char* line :
       {"{\"block\": 3}\n", "{\"file\": \"../evil\", \"text\": \"x\"}\n", "[1]\n",
        "{\"block\": {\"model\": \"m\", \"execution\": \"e\", \"phase\": "
        "\"forward\", \"batch\": 1, \"seq\": 1, \"context\": 0, \"ms_median\": "
        "-1, \"ms_min\": 1, \"ms_max\": 1}}\n"})
    reader.feed(line);
  reader.feed("no end of line");
  EXPECT_TRUE(reader.seen().blocks.empty());
  EXPECT_TRUE(reader.seen().files.empty());
  reader.end();
  EXPECT_EQ(reader.seen().other.back(), "no end of line");
}

TEST(MeasuringLines, AFailureHasItsReason) {
  MeasuringReader reader;
  reader.feed(end_line(false, "coda: y is off by 3 %"));
  EXPECT_EQ(reader.seen().passed, false);
  EXPECT_THAT(reader.seen().text, HasSubstr("off by"));
}

TEST(MeasuringLines, FilesBecomeAFolderThatReadsTheSame) {
  const TemporaryFolder folder("fuseline-test");
  const Measurements all = shipped();
  MeasuringReader reader;
  reader.feed(file_lines(all));
  const std::filesystem::path kept = folder.path() / "kept";
  keep_measured(reader.seen(), kept);
  const Measurements back = load_measurements(kept.string());
  EXPECT_EQ(blocks_csv(back.blocks), blocks_csv(all.blocks));
  EXPECT_EQ(kernels_csv(back.traces), kernels_csv(all.traces));
  EXPECT_EQ(meta_toml(back.meta), meta_toml(all.meta));
  EXPECT_THROW(keep_measured(reader.seen(), kept), InputError);  // it is there already
  EXPECT_THROW(keep_measured({}, folder.path() / "other"), InputError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "other"));
}

TEST(MeasuringLines, BrokenFilesLeaveNothingBehind) {
  const TemporaryFolder folder("fuseline-test");
  Measuring broken;
  broken.files["block.csv"] = "model,execution\nllama2-7b\n";
  EXPECT_THROW(keep_measured(broken, folder.path() / "kept"), InputError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "kept"));
}

}  // namespace
}  // namespace fuseline
