// fuseline gemm --measure as far as a machine without a GPU goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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
