// Where the values of an epilogue wait, step by step, and what its slabs load.
#include "model/primitives/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/primitives/functions.h"

namespace fuseline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PlacementOfAnEpilogue : public ::testing::Test {
 protected:
  Operand tensor(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return graph.whole(graph.add_tensor({.name = name, .rows = rows, .cols = cols}));
  }
  // y = a b^T with 256 columns, and this body.
  Placement placement(std::vector<Primitive> body) {
    const Program program{.name = "k",
                          .mainloop = GemmMainloop{.a = a, .b = b, .M = 64, .N = 256, .K = 32},
                          .body = std::move(body)};
    return placement_of(program, analyse(program));
  }
  Graph graph;
  Operand a = tensor("a", 64, 32), b = tensor("b", 256, 32);
  Operand x = tensor("x", 64, 256), h = tensor("h", 64, 256), bias = tensor("bias", 1, 256);
  Operand scale = tensor("scale", 64, 1), half = tensor("half", 64, 128);
  Operand partial = tensor("partial", 64, 2);
};

// Numbered from 1 as the body has them: load x, add, store h, reduce.
TEST_F(PlacementOfAnEpilogue, AValueWaitsFromItsStepToItsLastUse) {
  const Placement p = placement({LoadTile{1, x}, Map{2, maps::add, {0, 1}}, StoreTile{2, h},
                                 TileReduce{reductions::sum_squares, Axis::rows, 2, partial}});
  ASSERT_THAT(p.registers, SizeIs(2));
  EXPECT_EQ(p.registers[0].value, 1) << "loaded where it is wanted, by the second step";
  EXPECT_EQ(p.registers[0].first, 2);
  EXPECT_EQ(p.registers[0].last, 2);
  EXPECT_EQ(p.registers[1].value, 2);
  EXPECT_EQ(p.registers[1].first, 2);
  EXPECT_EQ(p.registers[1].last, 4) << "over the store, until it is reduced";
  EXPECT_THAT(p.barriers, ElementsAre(3, 4));
  ASSERT_THAT(p.partials, SizeIs(1));
  EXPECT_EQ(p.partials[0].along, Axis::rows);
  EXPECT_EQ(p.partials[0].each, 2) << "as wide as the accumulator";
}

// What is stored as it is takes no registers beside the accumulator's.
TEST_F(PlacementOfAnEpilogue, ACopyIsItsOperandsRegisters) {
  EXPECT_THAT(placement({Map{1, maps::copy, {0}}, StoreTile{1, h}}).registers, IsEmpty());
  const Placement p = placement(
      {LoadTile{1, x}, Map{2, maps::add, {0, 1}}, Map{3, maps::copy, {2}}, StoreTile{3, h}});
  ASSERT_THAT(p.registers, SizeIs(2)) << "of what is loaded, and of the sum";
  EXPECT_EQ(p.registers[1].value, 2);
  EXPECT_EQ(p.registers[1].last, 4) << "until its copy is stored";
}

TEST_F(PlacementOfAnEpilogue, TilesAndVectorsAlongColumnsComeThroughSharedMemory) {
  const Placement p =
      placement({LoadTile{1, x}, LoadVector{2, bias, Axis::cols}, LoadVector{3, scale, Axis::rows},
                 Map{4, maps::mul, {0, 3}}, Map{5, maps::add, {4, 2}}, Map{6, maps::add, {5, 1}},
                 StoreTile{6, h}});
  ASSERT_THAT(p.shared, SizeIs(2)) << "not the numbers per row";
  EXPECT_EQ(p.shared[0].reach, Reach::col_numbers) << "wanted first";
  EXPECT_EQ(p.shared[1].reach, Reach::tile);
  for (const InRegisters& stay : p.registers) EXPECT_NE(stay.value, 3) << "kept for all slabs";
  EXPECT_THAT(p.partials, IsEmpty());
}

// What one part loads is loaded again by another part, and half the columns are half a group.
TEST_F(PlacementOfAnEpilogue, AScopeEndsWithWhatItLoaded) {
  const Operand upper{.tensor = half.tensor, .cols = 128, .rows = 64};
  const Placement p = placement({LoadTile{1, upper}, Columns{2, 0, 0, 128}, Columns{3, 0, 128, 128},
                                 Map{4, maps::add, {2, 1}}, Map{5, maps::add, {3, 1}},
                                 StoreTile{4, half}, StoreTile{5, half}});
  ASSERT_THAT(p.shared, SizeIs(2));
  for (const ThroughShared& load : p.shared) {
    EXPECT_EQ(load.value, 1);
    EXPECT_EQ(load.each, 2) << "as wide as its part";
  }
}

}  // namespace
}  // namespace fuseline
