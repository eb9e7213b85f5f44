// A block in one launch: what the copy engine is told of the operands of products, and where the
// kernel finds what it brings. A model of the engine stands in for it; no GPU is asked.
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

#include "cuda/export/recorded_plan.h"
#include "cuda/kernels/block/instruction.cuh"
#include "model/instructions/decode_block.h"
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

// Every element of the operand arrives where consumers look for it, whatever the slice.
template <int batch>
void expect_slices(const RecordedMap& map, std::int64_t columns, std::int64_t pitch) {
  using Shape = gpu::BlockShape<batch, 64, 8>;
  const auto value = [&](std::int64_t m, std::int64_t c) {
    return static_cast<std::uint16_t>(1 + m * columns + c);
  };
  ASSERT_LT(batch * columns, 65535) << "all values differ";
  std::vector<std::byte> memory(static_cast<std::size_t>(batch * pitch + kRoomBehind));
  for (std::int64_t m = 0; m < batch; ++m)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::uint16_t v = value(m, c);
      std::memcpy(memory.data() + m * pitch + 2 * c, &v, 2);
    }
  for (std::int64_t at = 0; at < columns; at += gpu::block_slice_columns) {
    const std::vector<std::byte> slice = copy_of_box(
        map, memory, {0, 0, static_cast<std::uint64_t>(at / gpu::block_box_columns), 0});
    ASSERT_EQ(slice.size(), static_cast<std::size_t>(Shape::operand_bytes));
    for (int m = 0; m < batch; ++m)
      for (int c = 0; c < gpu::block_slice_columns; ++c) {
        const gpu::u32 place = Shape::operand_place(c / 64, m, c % 64 / 8) + 2 * (c % 8);
        std::uint16_t there = 0;
        std::memcpy(&there, slice.data() + place, 2);
        if (at + c < columns) {
          ASSERT_EQ(there, value(m, at + c)) << "row " << m << ", column " << at + c;
        } else if (at + c >= (columns + 63) / 64 * 64) {
          ASSERT_EQ(there, 0) << "row " << m << ", column " << at + c;
        }
      }
  }
}

class BlockLaunch : public test::NeedsCompiler {};

template <int batch>
void expect_operand_maps(std::int64_t model, std::int64_t inner) {
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

  const RecordedPlan recorded = record_plan(plan, load_gpu("h200"), 2);
  ASSERT_EQ(recorded.launches.size(), 1U);
  struct Wanted {
    std::size_t offset;
    Operand operand;
    std::int64_t columns;
  };
  for (const Wanted& w : {Wanted{offsetof(gpu::BlockArgs, x_slice), block.x, model},
                          Wanted{offsetof(gpu::BlockArgs, attn_slice), block.attn, 512},
                          Wanted{offsetof(gpu::BlockArgs, h_slice), block.h, model},
                          Wanted{offsetof(gpu::BlockArgs, act_slice), block.act, inner}}) {
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
    for (const std::uint64_t stride : map.strides) EXPECT_EQ(stride % 16, 0U);
    expect_slices<batch>(map, w.columns, static_cast<std::int64_t>(map.strides[0]));
    EXPECT_EQ(map.strides[0], static_cast<std::uint64_t>(2 * w.columns)) << "rows are not padded";
  }
}

TEST_F(BlockLaunch, OneCopyBringsASliceOfAllSequences) {
  expect_operand_maps<1>(256, 704);
  expect_operand_maps<2>(2048, 5632);
  expect_operand_maps<3>(1056, 2080);  // 32 columns behind the last 64
  expect_operand_maps<5>(4128, 4640);
  expect_operand_maps<8>(1056, 2080);
}

// ldmatrix reads 16 bytes of each sequence at once: they lie in different banks.
template <int batch>
void expect_no_conflicts() {
  SCOPED_TRACE(batch);
  for (int box = 0; box < gpu::block_slice_columns / gpu::block_box_columns; ++box)
    for (int chunk = 0; chunk < 8; ++chunk) {
      std::set<gpu::u32> banks;
      for (int m = 0; m < batch; ++m)
        banks.insert(gpu::BlockShape<batch, 128, 4>::operand_place(box, m, chunk) / 16 % 8);
      EXPECT_EQ(banks.size(), static_cast<std::size_t>(batch)) << box << " " << chunk;
    }
}

TEST(BlockOperand, SequencesLieInDifferentBanks) {
  expect_no_conflicts<1>();
  expect_no_conflicts<2>();
  expect_no_conflicts<3>();
  expect_no_conflicts<5>();
  expect_no_conflicts<7>();
  expect_no_conflicts<8>();
}

}  // namespace
}  // namespace fuseline::cuda
