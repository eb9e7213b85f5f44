// fuseline gemm --measure as far as a machine without a GPU goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "cli/gemm_rows.h"
#include "cuda/run/measure_gemm.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

TEST(GemmMeasured, SaysWhatIsWrongBeforeTheGpuIsAskedFor) {
  const auto refused = [](std::vector<std::string> more, const char* message) {
    std::vector<std::string> args = {"gemm", "--gpu", "h100", "--m", "64", "--k", "512"};
    args.insert(args.end(), more.begin(), more.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr(message));
  };
  refused({"--n", "1021", "--measure"}, "a multiple of 8");
  refused({"--n", "1024", "--measure", "--dtype", "fp32"}, "has no kernels");
  refused({"--n", "1024", "--measure", "--bias"}, "plain products");
  refused({"--n", "1024", "--minutes", "3"}, "--measure beside it");
  refused({"--n", "1024", "--measure", "--minutes", "0"}, "--minutes");
  refused({"--n", "1024", "--variants", "all"}, "--measure beside it");
  refused({"--n", "1024", "--tiles", "tiles.csv"}, "--measure beside it");
  refused({"--n", "1024", "--measure", "--variants", "half-box"}, "half-boxes");
}

std::string table_file(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

// Nobody waits for a GPU, and nobody without one is told of that, before the list is found wrong.
TEST(GemmMeasured, ReadsTheListAndTheTableBeforeItAsksForAGpu) {
  const auto refused = [](const std::vector<std::string>& more, const char* message) {
    std::vector<std::string> args = {"gemm", "--measure"};
    args.insert(args.end(), more.begin(), more.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr(message));
  };
  refused({"--shapes", table_file("odd.csv", "m,n,k\n64,1021,512\n")}, "a multiple of 8");
  refused({"--shapes", table_file("short.csv", "m,n\n64,1024\n")}, "k");
  refused({"--shapes", testing::TempDir() + "/missing.csv"}, "missing.csv");
  const std::string good = table_file("good.csv", "m,n,k\n64,1024,512\n");
  refused({"--shapes", good, "--output", table_file("other.csv", "m,n,k\n1,8,8\n")}, "dtype");
  refused({"--shapes", good, "--tiles", table_file("no-tiles.csv", "m,n,k\n1,8,8\n")},
          "no table of tiles");
  refused(
      {"--shapes", good, "--variants", "all", "--output",
       table_file("plain.csv", gemm_header() + "8,8,8,bf16,a,1,b,1,b,1,1,1,1,1,1,0,,,d,e,f,g\n")},
      "tile");
}

TEST(GemmMeasured, ATableOfTilesHasALineForEach) {
  cuda::MeasuredGemm g;
  g.gemm = {.m = 64, .n = 72, .k = 512};
  g.library_time = Seconds(4e-6);
  for (const bool final : {true, false})
    g.tiles.push_back({.tile = {},
                       .name = "tile 64 x 64, cluster 1, 1 parts",
                       .time = Seconds(5e-6),
                       .predicted = Seconds(6e-6),
                       .final = final});
  const std::string path =
      table_file("tiles.csv", gemm_tiles_header() + gemm_tiles_lines(g, {"a, b", "c", "d"}));
  const CsvTable table(path);
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.text(0, "tile"), "tile 64 x 64, cluster 1, 1 parts");
  EXPECT_EQ(table.positive(1, "us"), 5);
  EXPECT_EQ(table.positive(1, "predicted_us"), 6);
  EXPECT_EQ(table.text(0, "final"), "yes");
  EXPECT_EQ(table.text(1, "final"), "no");
  EXPECT_EQ(table.text(1, "device"), "a, b");
}

// Times of two GPUs are no one table.
TEST(GemmMeasured, GoesOnWithNoOtherGpusTable) {
  cuda::MeasuredGemm g;
  g.gemm = {.m = 64, .n = 72, .k = 512};
  g.library = "library";
  g.library_time = Seconds(4e-6);
  g.tiles.push_back({.tile = {}, .name = "64 x 64", .time = Seconds(5e-6), .final = true});
  g.variants.push_back({.variant = "half-boxes",
                        .tile = "64 x 64",
                        .time = Seconds(4e-6),
                        .shipped_time = Seconds(5e-6),
                        .error = 1e-3});
  const GemmMachine machine{"NVIDIA H200, 132 SMs, 60 MiB L2", "580.159.04", "CUDA 13.0"};
  const std::string path = table_file("h200.csv", gemm_header() + gemm_line(g, machine));
  const std::vector<GemmRow> rows = read_gemm_rows(path);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].chosen, "64 x 64");
  EXPECT_NO_THROW(check_same_device(rows, machine.device, path));
  try {
    check_same_device(rows, "NVIDIA H100 80GB HBM3, 132 SMs, 50 MiB L2", path);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("h200.csv"));
    EXPECT_THAT(error.what(), HasSubstr("another GPU"));
  }

  const std::string of_variants =
      table_file("variants.csv", gemm_variant_header() + gemm_variant_lines(g, machine));
  const std::vector<GemmVariantRow> variants = read_gemm_variant_rows(of_variants);
  ASSERT_EQ(variants.size(), 1U);
  EXPECT_TRUE(variants[0].right);
  EXPECT_THAT(measured_variants_table(variants), HasSubstr("half-boxes: 1.250 times the shipped"));
  EXPECT_THROW(check_same_device(variants, "another", of_variants), InputError);
}

// What is fast and wrong is no gain.
TEST(GemmMeasured, WrongVariantsHaveNoPartInTheMeans) {
  const std::vector<GemmVariantRow> rows = {
      {.m = 8,
       .n = 8,
       .k = 8,
       .tile = "a",
       .variant = "x",
       .us = 1,
       .shipped_us = 9,
       .right = false},
      {.m = 8, .n = 8, .k = 8, .tile = "b", .variant = "x", .us = 2, .shipped_us = 3}};
  const std::string table = measured_variants_table(rows);
  EXPECT_THAT(table, HasSubstr("wrong result"));
  EXPECT_THAT(table, HasSubstr("x: 1.500 times the shipped tile's speed (geometric mean of 1)"));
}

// The best is among those that were timed in all rounds.
TEST(GemmMeasured, TakesTheBestOfTheFinalTiles) {
  cuda::MeasuredGemm g;
  for (const auto& [us, final] : {std::pair{9.0, true}, {5.0, false}, {7.0, true}})
    g.tiles.push_back({.tile = {}, .name = "", .time = Seconds(us * 1e-6), .final = final});
  EXPECT_EQ(&g.best(), &g.tiles[2]);
  EXPECT_EQ(&g.chosen(), &g.tiles[0]);
  g.error = 1.1e-3;  // of rounding to 8 bits
  EXPECT_TRUE(g.right());
  g.error = 1e-2;
  EXPECT_FALSE(g.right());
}

}  // namespace
}  // namespace fuseline
