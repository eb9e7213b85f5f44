#include "sim/judge/measured_tiles.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/gemm_raster.h"

namespace fuseline {
namespace {

TEST(MeasuredTiles, AreReadFromTheTextOfATrace) {
  EXPECT_EQ(tile_edges("128x256x64"), (TileEdges{128, 256, 64}));
  for (const char* wrong : {"", "128x256", "128x256x64x2", "128x256x", "0x256x64", "-1x2x3", "a"})
    EXPECT_FALSE(tile_edges(wrong)) << wrong;
}

// A decode product was measured in a tile of 128 rows, and the tool takes another one today.
TEST(MeasuredTiles, ArePredictedInPlaceOfTheChosenOnes) {
  const Gpu gpu = load_gpu("h100-sxm");
  BlockCase block{.model = "llama2-7b", .execution = "coda", .workload = {}};
  block.workload.phase = Phase::decode;
  block.workload.batch = 3;
  block.workload.seq = 1;
  block.workload.context = 1700;
  MeasuredKernel qkv;
  qkv.site = qkv.kernel = "qkv";
  qkv.time = Seconds(51e-6);
  qkv.tile = "128x128x64";
  MeasuredKernel other = qkv;
  other.site = "down";
  other.tile = "96x13x64";  // in no menu
  Measurements measured;
  measured.traces.push_back({block, {qkv, other}});

  const auto tiles_of = [&](const MeasuredTiles& tiles) {
    Plan plan = make_plan("coda", load_model("llama2-7b"), block.workload, plan_target(gpu));
    tiles.give_to(plan, block);
    std::map<std::string, std::vector<std::int64_t>> out;
    for (const KernelEstimate& k : simulate(plan, gpu, Fidelity::hierarchy).kernels)
      out[k.name] = k.tile;
    return out;
  };
  auto chosen = tiles_of({});
  auto ran = tiles_of(MeasuredTiles(measured));
  EXPECT_NE(chosen["qkv"], ran["qkv"]);
  EXPECT_EQ(ran["qkv"], (std::vector<std::int64_t>{128, 128, 64}));
  EXPECT_EQ(ran["down"], chosen["down"]) << "a tile that no menu has is chosen as ever";
  // Another block's tiles say nothing of this one.
  measured.traces.front().block.workload.batch = 4;
  EXPECT_EQ(tiles_of(MeasuredTiles(measured)), chosen);
}

// A folder says whether launches overlapped.
TEST(MeasuredTiles, LaunchesOverlapWhereTheFolderSaysSo) {
  Measurements measured;
  EXPECT_EQ(MeasuredTiles(measured).launching(), Launching::graph);
  measured.meta.launches = kOverlappingLaunches;
  EXPECT_EQ(MeasuredTiles(measured).launching(), Launching::overlap);
}

// A folder says how its products were swept: bytes are those of the day.
TEST(MeasuredTiles, GroupsOfTilesAreThoseOfTheDay) {
  const Gpu gpu = load_gpu("h200");
  BlockCase block{.model = "llama3-8b", .execution = "coda", .workload = {}};
  block.workload.phase = Phase::forward;
  block.workload.batch = 1;
  block.workload.seq = 1128;
  Measurements measured;
  const auto read_by_gate_up = [&] {
    Plan plan = make_plan("coda", load_model(block.model), block.workload, plan_target(gpu));
    MeasuredTiles(measured).give_to(plan, block);
    double megabytes = 0;
    for (const KernelEstimate& k : simulate(plan, gpu, Fidelity::hierarchy).kernels)
      if (k.name == "gate_up") megabytes = k.hbm_read.as_double() / 1e6;
    return megabytes;
  };
  const double today = read_by_gate_up();
  measured.meta.raster_clusters = 8;
  EXPECT_NEAR(read_by_gate_up(), 518, 0.1 * 518) << "measured with groups of eight";
  EXPECT_NEAR(today, 286, 0.15 * 286) << "and with one of nine rows";
  measured.meta.raster_clusters = kLeastReadGroup;
  EXPECT_NEAR(read_by_gate_up(), 286, 0.15 * 286) << "and with the group that reads least";
}

}  // namespace
}  // namespace fuseline
