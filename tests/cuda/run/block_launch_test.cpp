// A block in one launch: what the copy engine is told of weights and operands of products, and
// where the kernel finds what it brings. A model of the engine stands in for it; no GPU is asked.
#include "cuda/run/block_launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "cuda/emit/block_source.h"
#include "cuda/export/recorded_plan.h"
#include "cuda/kernels/block/instruction.cuh"
#include "model/instructions/decode_block.h"
#include "model/instructions/instructions.h"
#include "model/policy.h"
#include "tests/cuda/needs.h"
#include "tests/model/tiny_models.h"

namespace fuseline::cuda {
namespace {

constexpr std::int64_t kRoomBehind = 256;  // the last row of a tensor

// What one copy of 2-byte elements brings: dimension 0 fastest, zeros from outside the tensor,
// chunks of 16 bytes exchanged within 128 bytes.
std::vector<std::byte> copy_of_box(const RecordedMap& map, std::span<const std::byte> memory,
                                   const std::array<std::uint64_t, 4>& corner) {
  std::vector<std::byte> box(std::size_t{2} * map.box[0] * map.box[1] * map.box[2] * map.box[3]);
  for (std::size_t e = 0; 2 * e < box.size(); ++e) {
    std::size_t rest = e, from = 0;
    bool inside = true;
    for (std::size_t d = 0; d < 4; ++d) {
      const std::uint64_t at = corner.at(d) + rest % map.box.at(d);
      rest /= map.box.at(d);
      inside = inside && at < map.sizes.at(d);
      from += at * (d == 0 ? 2 : map.strides.at(d - 1));
    }
    if (!inside) continue;
    if (from + 2 > memory.size()) {
      ADD_FAILURE() << "byte " << from << " of " << memory.size();
      return box;
    }
    const std::size_t to = 2 * e;
    std::memcpy(box.data() + (to ^ ((to >> 7 & 7) << 4)), memory.data() + from, 2);
  }
  return box;
}

// Every element arrives where consumers look for it, in the slices of the box's rows from `first`
// onward of a matrix.
void expect_slices(const RecordedMap& map, std::int64_t rows, std::int64_t columns,
                   std::int64_t first) {
  SCOPED_TRACE(first);
  const auto pitch = static_cast<std::int64_t>(map.strides[0]);
  const auto box_rows = static_cast<int>(map.box[1]);
  const auto value = [&](std::int64_t m, std::int64_t c) {
    return static_cast<std::uint16_t>(1 + (m * columns + c) % 65521);
  };
  std::vector<std::byte> memory(static_cast<std::size_t>(rows * pitch + kRoomBehind));
  for (std::int64_t m = first; m < std::min(rows, first + box_rows); ++m)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::uint16_t v = value(m, c);
      std::memcpy(memory.data() + m * pitch + 2 * c, &v, 2);
    }
  for (std::int64_t at = 0; at < columns; at += gpu::block_slice_columns) {
    const std::vector<std::byte> slice =
        copy_of_box(map, memory,
                    {0, static_cast<std::uint64_t>(first),
                     static_cast<std::uint64_t>(at / gpu::block_box_columns), 0});
    ASSERT_EQ(slice.size(), static_cast<std::size_t>(2 * box_rows * gpu::block_slice_columns));
    for (int m = 0; m < box_rows; ++m)
      for (int c = 0; c < gpu::block_slice_columns; ++c) {
        const gpu::u32 place =
            gpu::slice_place(box_rows, c / 64, m, c % 64 / 8) + 2 * static_cast<gpu::u32>(c % 8);
        std::uint16_t there = 0;
        std::memcpy(&there, slice.data() + place, 2);
        if (first + m >= rows || at + c >= (columns + 63) / 64 * 64) {
          ASSERT_EQ(there, 0) << "row " << m << ", column " << at + c;
        } else if (at + c < columns) {
          ASSERT_EQ(there, value(first + m, at + c)) << "row " << m << ", column " << at + c;
        }
      }
  }
}

class BlockLaunch : public test::NeedsCompiler {};

std::int64_t most_rows(const BlockInstructions& all, Step step) {
  std::int64_t most = 0;
  for (const auto& sm : all.sms)
    for (const Instruction& i : sm)
      if (i.step == step) most = std::max(most, i.count);
  return most;
}

void expect_maps_of_products(std::int64_t batch, std::int64_t model, std::int64_t inner) {
  SCOPED_TRACE(batch);
  ModelConfig config = test::tiny_llama();
  config.D = model;
  config.F = inner;
  config.H = 8;
  config.Hkv = 1;
  config.d = 64;
  const Workload work{.phase = Phase::decode, .batch = batch, .seq = 1, .context = 70};
  const Plan plan = make_plan("whole-block", config, work);
  const DecodeBlock block = std::get<DecodeBlock>(decode_block(plan.graph, plan.kernels.front()));
  const Gpu gpu = load_gpu("h200");
  const BlockInstructions all =
      block_instructions(block, block_sizes(static_cast<int>(gpu.sm_count)));

  const RecordedPlan recorded = record_plan(plan, gpu, 2);
  ASSERT_EQ(recorded.launches.size(), 1U);
  struct Wanted {
    std::size_t offset;
    Operand operand;
    std::int64_t columns, box_rows;
  };
  for (const Wanted& w :
       {Wanted{offsetof(gpu::BlockArgs, x_slice), block.x, model, batch},
        Wanted{offsetof(gpu::BlockArgs, attn_slice), block.attn, 512, batch},
        Wanted{offsetof(gpu::BlockArgs, h_slice), block.h, model, batch},
        Wanted{offsetof(gpu::BlockArgs, act_slice), block.act, inner, batch},
        Wanted{offsetof(gpu::BlockArgs, w_qkv), block.w_qkv, model, most_rows(all, Step::qkv)},
        Wanted{offsetof(gpu::BlockArgs, w_o), block.w_o, 512, most_rows(all, Step::out)},
        Wanted{offsetof(gpu::BlockArgs, w_gate_up), block.w_gate_up, model,
               most_rows(all, Step::gate_up)},
        Wanted{offsetof(gpu::BlockArgs, w_down), block.w_down, inner,
               most_rows(all, Step::down)}}) {
    SCOPED_TRACE(plan.graph.tensor(w.operand.tensor).name);
    const auto found =
        std::ranges::find(recorded.launches[0].maps, static_cast<std::int64_t>(w.offset),
                          [](const MapPlace& m) { return m.at.offset; });
    ASSERT_NE(found, recorded.launches[0].maps.end());
    EXPECT_EQ(found->at.target, w.operand.tensor.index);
    EXPECT_EQ(found->at.addend, 0);
    const RecordedMap& map = found->map;
    EXPECT_EQ(map.rank, 4U);
    EXPECT_EQ(map.swizzle, 3U) << "128 bytes";
    EXPECT_EQ(map.box[1], w.box_rows);
    EXPECT_LE(map.box[1], gpu::block_tile_rows);
    EXPECT_EQ(map.strides[0], static_cast<std::uint64_t>(2 * w.columns)) << "rows are not padded";
    for (const std::uint64_t stride : map.strides) EXPECT_EQ(stride % 16, 0U);
    const std::int64_t rows = w.operand.rows;
    expect_slices(map, rows, w.columns, 0);
    if (rows > w.box_rows) {
      expect_slices(map, rows, w.columns, w.box_rows);
      expect_slices(map, rows, w.columns, rows - 3);  // the others lie behind the matrix
    }
  }
}

TEST_F(BlockLaunch, OneCopyBringsASliceOfAllSequencesAndOneOfWeights) {
  expect_maps_of_products(1, 256, 704);
  expect_maps_of_products(2, 512, 1408);
  expect_maps_of_products(3, 1056, 2080);  // 32 columns behind the last 64
  expect_maps_of_products(5, 608, 736);
  expect_maps_of_products(8, 1056, 2080);
}

// ldmatrix reads 16 bytes of each of up to eight rows at once: they lie in different banks.
TEST(BlockSlice, EightRowsLieInDifferentBanks) {
  for (int rows = 1; rows <= gpu::block_tile_rows; ++rows) {
    SCOPED_TRACE(rows);
    for (int group = 0; group < gpu::block_slice_columns / gpu::block_box_columns; ++group)
      for (int first = 0; first < rows; first += 8)
        for (int chunk = 0; chunk < 8; ++chunk) {
          std::set<gpu::u32> banks;
          const int count = std::min(8, rows - first);
          for (int r = first; r < first + count; ++r)
            banks.insert(gpu::slice_place(rows, group, r, chunk) / 16 % 8);
          ASSERT_EQ(banks.size(), static_cast<std::size_t>(count)) << group << " " << chunk;
        }
  }
}

// Consumers read 32 rows of weights of each 64 columns, also where a tile has fewer.
TEST(BlockSlice, WhatConsumersReadLiesInTheStage) {
  using Shape = gpu::BlockShape<8, 128, 4>;
  for (int rows = 1; rows <= gpu::block_tile_rows; ++rows)
    for (int chunk = 0; chunk < 8; ++chunk)
      EXPECT_LE(gpu::slice_place(rows, 7, gpu::block_tile_rows - 1, chunk) + 16,
                static_cast<gpu::u32>(Shape::stage_bytes));
}

}  // namespace
}  // namespace fuseline::cuda
