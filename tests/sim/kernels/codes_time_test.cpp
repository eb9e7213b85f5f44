// Our own kernels for weights in codes: their tiles, what was counted in their source, and
// products.csv, what they took on an H100. Constants were fitted to the products of chain.block and
// to none of other.block.
#include "sim/kernels/codes_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/csv.h"
#include "base/data_dir.h"
#include "model/activation_formats/stored_activation.h"
#include "model/config/dtype.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_model.h"

namespace fuseline {
namespace {

GemmProblem product(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& weights) {
  GemmProblem problem = plain_gemm(m, n, k, 1, 2, 3, 4);
  problem.library = false;
  problem.weight = parse_stored_weight(weights, "--weights", "bf16");
  problem.b.matrix.element = size_of(problem.weight.element());
  return problem;
}

StoredWeight codes_of(std::int64_t bits) {
  return parse_stored_weight(bits == 4 ? "int4" : "fp8", "--weights", "bf16");
}

// What the mainloop in gemm_codes.cuh does, chunk by chunk: the chunks that the warp with most of
// them multiplies in the thread block with the longest part of K.
std::int64_t turns_of_the_kernel(const GemmTile& tile, std::int64_t k, std::int64_t bits) {
  const std::int64_t chunks = ceil_div(k, codes_chunk(bits));
  const std::int64_t side_by_side = tile.m <= 32 ? 2 : 1;
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < tile.cluster_k; ++rank) {
    const std::int64_t first = chunks * rank / tile.cluster_k;
    const std::int64_t last = chunks * (rank + 1) / tile.cluster_k;
    for (std::int64_t k_warp = 0; k_warp < 2; ++k_warp) {
      std::int64_t turns = 0;
      for (std::int64_t t = 0; t < last - first; ++t) {
        const std::int64_t chunk =
            t / side_by_side * (2 * side_by_side) + k_warp * side_by_side + t % side_by_side;
        if (first + chunk < last) ++turns;
      }
      most = std::max(most, turns);
    }
  }
  return most;
}

TEST(CodesTile, CountsTheTurnsOfTheKernel) {
  for (const std::int64_t m : {1, 16, 17, 64})
    for (const std::int64_t n : {128, 1024, 12288})
      for (const std::int64_t k : {64, 130, 1024, 2050, 5632, 12288})
        for (const std::int64_t bits : {4, 8}) {
          const GemmTile tile = codes_tile(m, n, k, {}, codes_of(bits), true);
          EXPECT_EQ(codes_turns(tile, k, bits), turns_of_the_kernel(tile, k, bits))
              << m << " " << n << " " << k << " " << bits;
        }
}

TEST(CodesTile, FollowsRowsAndPartsOfK) {
  EXPECT_EQ(codes_tile(1, 12288, 4096, {}, codes_of(4), true).m, 8);
  EXPECT_EQ(codes_tile(9, 12288, 4096, {}, codes_of(4), true).m, 16);
  EXPECT_EQ(codes_tile(2048, 12288, 4096, {}, codes_of(4), true).m, 64);
  EXPECT_EQ(codes_tile(1, 2048, 12288, {}, codes_of(4), true).cluster_k, 8);
  EXPECT_EQ(codes_tile(1, 2048, 12288, {}, codes_of(4), false).cluster_k,
            1);  // no clusters, no parts
  EXPECT_EQ(codes_tile(1, 2048, 1024, {}, codes_of(4), true).cluster_k,
            2);  // parts of 512 at least
  // Three thread blocks where they have registers enough, else two.
  const auto resident = [](const char* weights, const std::vector<std::int64_t>& groups) {
    return codes_tile(8, 4096, 4096, groups, parse_stored_weight(weights, "--weights", "bf16"),
                      true)
        .blocks_per_sm;
  };
  for (const char* weights : {"fp8", "int8", "int4", "int4:256", "mxfp4"})
    EXPECT_EQ(resident(weights, {}), 3) << weights;
  for (const char* weights : {"int4-zero", "nvfp4", "int4:64", "int4:32", "fp8-block", "int8:128"})
    EXPECT_EQ(resident(weights, {}), 2) << weights;
  EXPECT_EQ(resident("int4", {4, 4}), 2);
  // Rows in groups: the longest group has the tile.
  EXPECT_EQ(codes_tile(40, 2048, 2048, {30, 4, 6}, codes_of(4), true).m, 32);
}

TEST(CodesTile, IsOfOurOwnProductsWithOneTileForTheEpilogue) {
  const Gpu gpu = load_gpu("h100-sxm");
  GemmProblem p = product(16, 4096, 4096, "int4");
  EXPECT_TRUE(has_codes_tile(p, gpu));
  EXPECT_EQ(choose_tile(p, gpu).n, 128);
  p.needs.column_group = 256;  // codes of 128 columns behind SwiGLU
  EXPECT_FALSE(has_codes_tile(p, gpu));
  EXPECT_EQ(choose_tile(p, gpu).n % 256, 0);
  p = product(16, 4096, 4096, "int4");
  p.library = true;
  EXPECT_FALSE(has_codes_tile(p, gpu));
  EXPECT_FALSE(has_codes_tile(product(16, 4096, 4096, "int4:100"), gpu));
  EXPECT_FALSE(has_codes_tile(plain_gemm(16, 4096, 4096, 1, 2, 3, 4), gpu));
}

GemmProblem of_codes(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& format) {
  GemmProblem problem = product(m, n, k, weights_for(parse_stored_activation(format, "", "")));
  problem.activation = parse_stored_activation(format, "", "");
  problem.a.matrix.element = size_of(problem.activation.element());
  return problem;
}

TEST(CodesTile, HopperMultipliesCodesByCodesInTheTilesOfOtherProducts) {
  const Gpu gpu = load_gpu("h100-sxm");
  const GemmProblem p = of_codes(2048, 12288, 4096, "fp8");
  ASSERT_TRUE(has_tile_of_codes(p, gpu));
  const GemmTile tile = choose_tile(p, gpu);
  EXPECT_FALSE(tile.dequantises);
  EXPECT_GE(tile.m * tile.n, 128 * 192);
  EXPECT_EQ(tile.k, 128);  // codes in the bytes of 64 numbers
  // At twice the rate of 16 bits, of which the library reaches less.
  GemmProblem numbers = plain_gemm(2048, 12288, 4096, 1, 2, 3, 4);
  numbers.library = false;
  const double gain =
      quick_gemm_time(numbers, choose_tile(numbers, gpu), gpu) / quick_gemm_time(p, tile, gpu);
  EXPECT_GT(gain, 1.5);
  EXPECT_LT(gain, 2);
}

// cuda/bench/codes_bench.cu on one H200, CUDA 13.0, 2026-11-26, us. That the part of the rate is
// that of bf16 was decided with these in view.
TEST(CodesTime, OfHopperIsWhatWasMeasured) {
  const Gpu gpu = load_gpu("h200");
  GemmProblem p = of_codes(2048, 12288, 4096, "fp8");
  p.needs.only_stores = true;
  for (const auto& [columns, measured] :
       {std::pair{256, 142.9}, std::pair{192, 144.7}, std::pair{128, 149.0}}) {
    const GemmTile tile{.m = 128, .n = columns, .k = 128, .stages = 4, .cluster_m = 2};
    EXPECT_NEAR(quick_gemm_time(p, tile, gpu).value() * 1e6 / measured, 1, 0.03) << columns;
  }
}

TEST(CodesTile, OtherProductsOfCodesAreDequantised) {
  const Gpu gpu = load_gpu("h100-sxm");
  const auto dequantised = [&](const GemmProblem& p, const Gpu& on) {
    return !has_tile_of_codes(p, on) && choose_tile(p, on).dequantises;
  };
  EXPECT_TRUE(dequantised(of_codes(2048, 4096, 4096, "fp8-block"), gpu));
  EXPECT_TRUE(dequantised(of_codes(2048, 4096, 4096, "int8"), gpu));
  EXPECT_TRUE(dequantised(product(2048, 4096, 4096, "fp8"), gpu));
  EXPECT_TRUE(dequantised(of_codes(2048, 4096, 4096, "fp8"), load_gpu("rtx4090")));
  GemmProblem experts = of_codes(2048, 4096, 4096, "fp8");
  experts.groups = {2000, 48};
  EXPECT_TRUE(dequantised(experts, gpu));
}

// Measurements name the tile that ran: a step of 64 codes is that of the kernel that dequantises.
TEST(CodesTile, IsTheOneThatAMeasurementNames) {
  const Gpu gpu = load_gpu("h100-sxm");
  GemmProblem p = of_codes(2048, 12288, 4096, "fp8");
  p.ran = TileEdges{64, 128, 64};
  EXPECT_TRUE(choose_tile(p, gpu).dequantises);
  p.ran = TileEdges{64, 128, 128};
  EXPECT_FALSE(choose_tile(p, gpu).dequantises);
  EXPECT_EQ(choose_tile(p, gpu).m, 64);
}

TEST(CodesWork, IsCountedInTheSource) {
  const Gpu gpu = load_gpu("h100-sxm");
  // 96 tiles of 8 rows in clusters of four, which leave some multiprocessors idle: four thread
  // blocks, each with a quarter of 32 chunks of K, on the fullest of the others.
  const GemmProblem p = product(1, 12288, 4096, "int4");
  const GemmTile tile = codes_tile(p.m, p.n, p.k, {}, p.weight, true);
  ASSERT_EQ(tile.cluster_k, 4);
  ASSERT_EQ(tile.blocks_per_sm, 3);
  const CodesWork one = codes_work(p, tile, 384, gpu);
  EXPECT_EQ(one.copies, 0.5 * 4 * 8 * 1024 / 8);  // products of 8 rows take half as much
  EXPECT_EQ(one.scale_loads, 0.0);                // a chunk's sums are scaled, not its codes
  EXPECT_EQ(one.rows, 4.0);                       // of one row
  EXPECT_EQ(one.waits, 2.0);                      // 4 chunks of a warp, two at a time
  // Scales of a zero point's format: of 16 groups of 8 columns, once a chunk, and so are zero
  // points. A scale for 16 columns is four loads where one serves 128.
  const double scales = 4.0 * 16 * 8;
  EXPECT_EQ(codes_work(product(1, 12288, 4096, "int4-zero"), tile, 384, gpu).scale_loads,
            2 * scales);
  EXPECT_EQ(codes_work(product(1, 12288, 4096, "nvfp4"), tile, 384, gpu).scale_loads, 4 * scales);
  EXPECT_EQ(codes_work(product(1, 12288, 4096, "fp8"), tile, 384, gpu).scale_loads, 0.0);
  // Codes of 8 bits are twice as many loads to wait for.
  EXPECT_EQ(codes_work(product(1, 12288, 4096, "fp8"), tile, 384, gpu).waits, 4.0);
}

TEST(CodesTime, WaitsForWhatAnEpilogueLoads) {
  const Gpu gpu = load_gpu("h100-sxm");
  GemmProblem p = product(1, 4096, 4096, "int4");
  const GemmTile tile = codes_tile(p.m, p.n, p.k, {}, p.weight, true);
  const double before = codes_work(p, tile, 8, gpu).waits;
  EpilogueStream residual = p.epilogue.front();
  residual.store = false;
  p.epilogue.push_back(residual);
  EXPECT_EQ(codes_work(p, tile, 8, gpu).waits, before + 2);  // two slabs of 64 columns
  p.epilogue.back().width = 1;                               // of rows
  EXPECT_EQ(codes_work(p, tile, 8, gpu).waits, before + 1);
}

struct BlockErrors {
  double mean = 0, worst = 0;
  int count = 0;
};

BlockErrors errors_of(const std::string& block) {
  const Gpu gpu = load_gpu("h100-sxm");
  const CsvTable table((data_dir() / "measurements/h100-codes-fuseline/products.csv").string());
  BlockErrors e;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "block") != block) continue;
    GemmProblem p = product(table.whole(row, "m"), table.whole(row, "n"), table.whole(row, "k"),
                            table.text(row, "weights"));
    // Hopper's kernel for few rows was not there yet.
    p.ran = codes_tile(p.m, p.n, p.k, {}, p.weight, true).edges();
    L2Cache cache(effective_l2_capacity(gpu));
    const double predicted = simulate_gemm(p, gpu, cache).time.time.value() * 1e6;
    const double error = std::abs(predicted / table.positive(row, "us_median") - 1);
    e.mean += error;
    e.worst = std::max(e.worst, error);
    ++e.count;
  }
  e.mean /= e.count;
  return e;
}

// The errors that the constants' sources state, and as much again for what they do not.
TEST(CodesTime, OfFittedProductsIsWhatWasMeasured) {
  const BlockErrors e = errors_of("chain");
  EXPECT_EQ(e.count, 95);
  EXPECT_LT(e.mean, 0.07);
  EXPECT_LT(e.worst, 0.26);
}

TEST(CodesTime, OfOtherProductsToo) {
  const BlockErrors e = errors_of("other");
  EXPECT_EQ(e.count, 36);
  EXPECT_LT(e.mean, 0.07);
  EXPECT_LT(e.worst, 0.25);
}

}  // namespace
}  // namespace fuseline
