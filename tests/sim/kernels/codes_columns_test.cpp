// Which products of codes Hopper's kernel for few rows has, in which form, and its time.
#include "sim/kernels/codes_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model/config/dtype.h"
#include "model/config/model_files.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/columns_time.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_model.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

CodesProduct product_of_codes(std::int64_t m, std::int64_t n, std::int64_t k,
                              const std::string& weights) {
  return {m, n, k, parse_stored_weight(weights, "--weights", "bf16")};
}

EpilogueNeeds sums_of_rows(int numbers = 1) {
  EpilogueNeeds needs;
  needs.row_partial_cols = 128;
  needs.row_sums = numbers;
  return needs;
}

// Of LLaMA-2-7B: one thread block on each multiprocessor.
TEST(CodesColumnsForm, HasColumnsForOneRoundOfAllMultiprocessors) {
  const auto qkv = codes_columns(product_of_codes(1, 12288, 4096, "int8"), {});
  ASSERT_TRUE(qkv);
  EXPECT_EQ(qkv->columns, 96);  // 128 thread blocks
  EXPECT_EQ(qkv->row_warps, 1);
  EXPECT_EQ(qkv->boxes, 32);
  EXPECT_EQ(qkv->stages, 16);  // two rounds of 16 warps, two to a box
  const auto gate_up = codes_columns(product_of_codes(1, 22016, 4096, "int8"), {});
  ASSERT_TRUE(gate_up);
  EXPECT_EQ(gate_up->columns, 176);  // 126
  EXPECT_EQ(gate_up->row_warps, 2);
  const auto down = codes_columns(product_of_codes(1, 4096, 11008, "int4"), sums_of_rows());
  ASSERT_TRUE(down);
  EXPECT_EQ(down->columns, 32);
  EXPECT_EQ(down->stages, down->boxes);  // all of a block's weights fit
  // Four rounds, since a box of more columns would be too high.
  const auto head = codes_columns(product_of_codes(1, 128256, 4096, "int8"), {});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->columns, 256);
  EXPECT_GT(ceil_div(128256, head->columns), 3 * kMultiprocessorsOfCodes);
  EXPECT_LE(ceil_div(128256, head->columns), 4 * kMultiprocessorsOfCodes);
}

TEST(CodesColumnsForm, IsAsHighAsTheRows) {
  for (const auto& [m, rows] :
       {std::pair{1, 1}, std::pair{2, 2}, std::pair{3, 4}, std::pair{8, 8}}) {
    const auto form = codes_columns(product_of_codes(m, 22016, 4096, "int8"), {});
    ASSERT_TRUE(form) << m;
    EXPECT_EQ(form->rows, rows) << m;
  }
  EXPECT_FALSE(codes_columns(product_of_codes(9, 12288, 4096, "int8"), {}));
}

// A ring has two rounds at least, or all boxes, and fits the shared memory.
TEST(CodesColumnsForm, HasARingThatFits) {
  int forms = 0;
  for (const char* weights : {"int8", "fp8", "int4", "int4:256", "int4:0"})
    for (const std::int64_t m : {1, 2, 4, 8})
      for (const std::int64_t n : {2560, 4096, 6144, 12288, 22016, 28672, 51200, 128256})
        for (const std::int64_t k : {512, 2560, 4096, 11008, 14336, 28672}) {
          const CodesProduct p = product_of_codes(m, n, k, weights);
          const auto f = codes_columns(p, {});
          if (!f) continue;
          ++forms;
          EXPECT_TRUE(f->stages == f->boxes ||
                      (f->stages % f->box_step() == 0 && f->stages >= 2 * f->box_step()));
          EXPECT_LE(columns_shared_bytes(p, *f) + f->stages * f->columns * kColumnsBoxBytes,
                    227 * 1024);
          EXPECT_EQ(f->columns % 16, 0);
          EXPECT_GE(ceil_div(n, f->columns), 66);
        }
  EXPECT_GT(forms, 100);
}

TEST(CodesColumnsForm, LeavesOtherProductsToTheOtherKernel) {
  for (const char* weights : {"int4-zero", "int4:64", "int8:96", "fp8-block", "mxfp4", "nvfp4"})
    EXPECT_FALSE(codes_columns(product_of_codes(1, 12288, 4096, weights), {})) << weights;
  EXPECT_FALSE(
      codes_columns(product_of_codes(1, 12288, 4100, "int8"), {}));  // 16 bytes of A at once
  EXPECT_FALSE(
      codes_columns(product_of_codes(1, 12288, 128, "int4:128"), {}));       // one scale lies alone
  EXPECT_FALSE(codes_columns(product_of_codes(1, 2048, 4096, "int8"), {}));  // 64 thread blocks
  EXPECT_FALSE(
      codes_columns(product_of_codes(8, 4096, 28672, "int8"), {}));  // A fills shared memory
  EpilogueNeeds needs;
  for (const std::int64_t group : {20, 24, 64}) {
    needs.column_group = group;
    EXPECT_FALSE(codes_columns(product_of_codes(1, 12288, 4096, "int8"), needs)) << group;
  }
  needs = {};
  needs.reduces_columns = true;
  EXPECT_FALSE(codes_columns(product_of_codes(1, 12288, 4096, "int8"), needs));
}

TEST(CodesColumnsForm, HasSumsAlongRowsOfOnePrimitive) {
  const CodesProduct p = product_of_codes(1, 12288, 4096, "int8");
  EXPECT_TRUE(codes_columns(p, sums_of_rows(1)));
  EXPECT_TRUE(codes_columns(p, sums_of_rows(2)));
  EpilogueNeeds needs = sums_of_rows(2);
  needs.row_sums_of_product = false;
  EXPECT_FALSE(codes_columns(p, needs));
  needs = sums_of_rows();
  needs.whole_partials = true;
  EXPECT_FALSE(codes_columns(p, needs));
  // Whole strips, where groups of columns are as wide as one.
  needs = {};
  EXPECT_EQ(codes_columns(product_of_codes(1, 6144, 4096, "int8"), needs)->columns, 48);
  needs.column_group = 16;
  EXPECT_EQ(codes_columns(product_of_codes(1, 6144, 4096, "int8"), needs)->columns, 48);
  needs.column_group = kColumnsStrip;
  EXPECT_EQ(codes_columns(product_of_codes(1, 6144, 4096, "int8"), needs)->columns, 64);
  // And where each column must come once.
  needs = {};
  needs.accumulates = true;
  EXPECT_EQ(codes_columns(product_of_codes(1, 22016, 4096, "int8"), needs)->columns % kColumnsStrip,
            0);
}

GemmProblem problem_of_codes(std::int64_t m, std::int64_t n, std::int64_t k,
                             const std::string& weights) {
  GemmProblem p = plain_gemm(m, n, k, 1, 2, 3, 4);
  p.library = false;
  p.weight = parse_stored_weight(weights, "--weights", "bf16");
  p.b.matrix.element = size_of(p.weight.element());
  return p;
}

TEST(CodesColumnsTile, IsHoppersAndOfOneProduct) {
  const Gpu hopper = load_gpu("h200");
  GemmProblem p = problem_of_codes(1, 12288, 4096, "int8");
  const GemmTile tile = choose_tile(p, hopper);
  EXPECT_TRUE(tile.whole_depth);
  EXPECT_EQ(tile.n, 96);
  EXPECT_FALSE(choose_tile(p, load_gpu("rtx4090")).whole_depth);
  p.groups = {1};
  EXPECT_FALSE(choose_tile(p, hopper).whole_depth);
  p = problem_of_codes(9, 12288, 4096, "int8");
  EXPECT_FALSE(choose_tile(p, hopper).whole_depth);
  // A measurement may name the tile of before.
  p = problem_of_codes(1, 12288, 4096, "int8");
  p.ran = codes_tile(p.m, p.n, p.k, {}, p.weight, true).edges();
  EXPECT_FALSE(choose_tile(p, hopper).whole_depth);
  p.ran = tile.edges();
  EXPECT_EQ(choose_tile(p, hopper), tile);
}

// Kernels are made for an architecture, and so for its largest GPUs. A shipped GPU that has more
// multiprocessors, and the same kernels, would leave some of them idle.
TEST(CodesColumnsTile, IsShapedForTheLargestHopperAndTheSameOnAll) {
  std::int64_t most = 0;
  int gpus = 0;
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    if (!has_feature(gpu, Feature::wgmma) || !has_feature(gpu, Feature::bulk_copy)) continue;
    most = std::max(most, gpu.sm_count);
    ++gpus;
    for (const std::int64_t rows : {1, 16}) {
      const GemmProblem p = problem_of_codes(rows, 12288, 4096, "int8");
      EXPECT_EQ(choose_tile(p, gpu), choose_tile(p, load_gpu("h200"))) << name;
    }
  }
  EXPECT_EQ(kMultiprocessorsOfCodes, most);
  EXPECT_GT(gpus, 3);
}

TEST(CodesColumnsTime, CountsAThreadBlocksWork) {
  GemmProblem p = problem_of_codes(3, 12288, 4096, "int4");
  const Gpu gpu = load_gpu("h200");
  const GemmTile tile = choose_tile(p, gpu);
  ASSERT_TRUE(tile.whole_depth);
  ColumnsWork work = columns_work(p, tile);
  EXPECT_EQ(work.copies, 3.0 * 4096 / 8);
  EXPECT_EQ(work.codes, 96.0 * 4096);
  EXPECT_EQ(work.code_bytes, 96.0 * (4096 / 2 + 32 * 2));
  EXPECT_TRUE(work.of_groups);
  EXPECT_FALSE(work.meets);
  p = problem_of_codes(1, 12288, 4096, "int8");
  p.needs = sums_of_rows();
  work = columns_work(p, choose_tile(p, gpu));
  EXPECT_FALSE(work.of_groups);
  EXPECT_TRUE(work.meets);
}

// Kernels of coda's blocks in decode, us, `fuseline measure --kernels` on one H200, CUDA 13.0,
// 2026-11-28. Constants were fitted to LLaMA-2-7B's.
struct MeasuredKernel {
  const char *model, *weights;
  std::int64_t batch;
  const char* kernel;
  double us;
};
constexpr MeasuredKernel kMeasuredColumns[] = {
    {"llama2-7b", "int8", 1, "qkv", 19.5},     {"llama2-7b", "int8", 1, "oproj", 13.5},
    {"llama2-7b", "int8", 1, "gate_up", 30.4}, {"llama2-7b", "int8", 1, "down", 23.1},
    {"llama2-7b", "fp8", 1, "qkv", 19.6},      {"llama2-7b", "fp8", 1, "oproj", 12.3},
    {"llama2-7b", "fp8", 1, "gate_up", 31.3},  {"llama2-7b", "fp8", 1, "down", 22.0},
    {"llama2-7b", "int4", 1, "qkv", 15.1},     {"llama2-7b", "int4", 1, "oproj", 11.0},
    {"llama2-7b", "int4", 1, "gate_up", 21.5}, {"llama2-7b", "int4", 1, "down", 17.6},
    {"llama2-7b", "int8", 5, "qkv", 23.0},     {"llama2-7b", "int8", 5, "oproj", 17.4},
    {"llama2-7b", "int8", 5, "gate_up", 32.0}, {"llama2-7b", "int4", 5, "qkv", 19.1},
    {"llama2-7b", "int4", 5, "gate_up", 25.3}, {"llama3-8b", "int4", 1, "qkv", 11.0},
    {"llama3-8b", "int4", 1, "oproj", 11.0},   {"llama3-8b", "int4", 1, "gate_up", 25.5},
    {"llama3-8b", "int4", 1, "down", 20.7},    {"llama3-8b", "int8", 5, "qkv", 16.9},
    {"llama3-8b", "int8", 5, "oproj", 17.5},   {"llama3-8b", "int8", 5, "gate_up", 38.5},
    {"qwen3-8b", "int8", 1, "oproj", 13.4},    {"qwen3-8b", "int8", 1, "gate_up", 32.9},
    {"qwen3-8b", "int8", 1, "down", 23.1},     {"qwen3-8b", "int4", 5, "gate_up", 25.6}};

TEST(CodesColumnsTime, IsWhatWasMeasured) {
  const Gpu gpu = load_gpu("h200");
  double fitted = 0, checked = 0;
  int fits = 0, checks = 0;
  for (const MeasuredKernel& m : kMeasuredColumns) {
    Workload work = test::decode(m.batch, 1, 2048);
    work.formats.weights = parse_stored_weight(m.weights, "--weights", "bf16");
    const Plan plan = make_plan("coda", build_block(load_model(m.model), work), plan_target(gpu));
    const PlanEstimate estimate = simulate(plan, gpu, Fidelity::hierarchy);
    const auto kernel = std::ranges::find(estimate.kernels, m.kernel, &KernelEstimate::name);
    ASSERT_NE(kernel, estimate.kernels.end()) << m.model << " " << m.kernel;
    const double error = std::abs(kernel->time.value() * 1e6 / m.us - 1);
    EXPECT_LT(error, 0.1) << m.model << " " << m.weights << " " << m.batch << " " << m.kernel;
    const bool fit = m.model == std::string("llama2-7b");
    (fit ? fitted : checked) += error;
    ++(fit ? fits : checks);
  }
  EXPECT_LT(fitted / fits, 0.035);
  EXPECT_LT(checked / checks, 0.04);
}

}  // namespace
}  // namespace fuseline
