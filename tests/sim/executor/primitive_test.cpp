// A primitive from outside runs, and moves the bytes that it says. Sorted places are what a promise
// of their keys leaves them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/primitives/sort_places.h"
#include "sim/executor/tile_interpreter.h"
#include "sim/memory/traffic.h"
#include "tests/extension/clip.h"

namespace fuseline::executor {
namespace {

TEST(OutsidePrimitive, RunsAndMovesTheBytesThatItAsksFor) {
  // Given a stream of one tile that limits row m to limits[m],
  Plan plan;
  const auto tensor = [&](const char* name, std::int64_t cols) {
    return plan.graph.whole(
        plan.graph.add_tensor({.name = name, .dtype = Dtype::fp32, .rows = 2, .cols = cols}));
  };
  const Operand x = tensor("x", 3);
  const Operand y = tensor("y", 3);
  const Operand limits = tensor("limits", 1);
  plan.homes.assign(3, Home::hbm);
  const Program program{.name = "k",
                        .mainloop = StreamMainloop{2, 3},
                        .body = {LoadTile{1, x}, extension::Clip{2, 1, limits}, StoreTile{2, y}}};
  Memory memory(plan, {});
  const std::vector<std::vector<float>> given{{-5, 0.5F, 2}, {-5, 0.5F, 2}};
  const std::vector<float> bounds{1, 3};
  for (std::size_t r = 0; r < 2; ++r) {
    const auto row = static_cast<std::int64_t>(r);
    memory.writable(x.tensor).write(row, 0, 3, given[r].data());
    memory.writable(limits.tensor).write(row, 0, 1, &bounds[r]);
  }

  // when the tile runs,
  const ValueAnalysis values = analyse(program);
  PartialSums partials;
  TileInterpreter interpreter(program.body, values, partials);
  Port port(plan.graph, memory);
  interpreter.begin({.row_end = 2, .columns = {0, 3}, .height = 2});
  interpreter.run(port, {}, true);

  // then the result is limited,
  std::vector<float> row(3);
  memory.at(y.tensor).read(0, 0, 3, row.data());
  EXPECT_EQ(row, (std::vector<float>{-1, 0.5F, 1}));
  memory.at(y.tensor).read(1, 0, 3, row.data());
  EXPECT_EQ(row, (std::vector<float>{-3, 0.5F, 2}));
  // and what was counted is what the traffic predicts.
  for (const RequestedBytes& r : requested_bytes(plan.graph, program, default_tile(program))) {
    const Moved& moved = port.traffic().at(static_cast<std::size_t>(r.tensor.index));
    EXPECT_EQ(r.loaded.value(), moved.loaded);
    EXPECT_EQ(r.stored.value(), moved.stored);
  }
}

// The keys' order, as a stream of one tile makes it.
std::vector<float> order_of(const std::vector<float>& keys, std::int64_t values) {
  const auto rows = static_cast<std::int64_t>(keys.size());
  Plan plan;
  const auto tensor = [&](const char* name) {
    return plan.graph.whole(
        plan.graph.add_tensor({.name = name, .dtype = Dtype::fp32, .rows = rows, .cols = 1}));
  };
  const Operand from = tensor("keys");
  const Operand to = tensor("order");
  plan.homes.assign(2, Home::hbm);
  const Program program{.name = "sort",
                        .mainloop = StreamMainloop{rows, 1},
                        .body = {SortPlaces{.order = 1, .keys = from, .values = values},
                                 StoreVector{1, to, Axis::rows}}};
  Memory memory(plan, {});
  for (std::int64_t r = 0; r < rows; ++r)
    memory.writable(from.tensor).write(r, 0, 1, &keys[static_cast<std::size_t>(r)]);
  const ValueAnalysis known = analyse(program);
  PartialSums partials;
  TileInterpreter interpreter(program.body, known, partials);
  Port port(plan.graph, memory);
  interpreter.begin({.row_end = rows, .columns = {0, 1}, .height = rows});
  interpreter.run(port, {}, true);
  std::vector<float> order(keys.size());
  for (std::int64_t r = 0; r < rows; ++r)
    memory.at(to.tensor).read(r, 0, 1, &order[static_cast<std::size_t>(r)]);
  return order;
}

TEST(SortedPlaces, ArePromisedToMakeNoDifference) {
  std::vector<float> keys;
  for (int i = 0; i < 2 * SortPlaces::kFewKeys; ++i) keys.push_back(static_cast<float>(i * 7 % 5));
  EXPECT_EQ(order_of(keys, 5), order_of(keys, 0));
  EXPECT_EQ(order_of(keys, 1000), order_of(keys, 0));
}

// What the kernel does to keys that it may not have: it must not count outside of its memory.
TEST(SortedPlaces, TakeKeysOfABrokenPromiseIntoItsRange) {
  std::vector<float> keys, limited;
  for (int i = 0; i < 2 * SortPlaces::kFewKeys; ++i) {
    const int key = i * 7 % 11 - 3;
    keys.push_back(static_cast<float>(key));
    limited.push_back(static_cast<float>(std::clamp(key, 0, 4)));
  }
  EXPECT_NE(order_of(keys, 5), order_of(keys, 0));
  EXPECT_EQ(order_of(keys, 5), order_of(limited, 0));
}

}  // namespace
}  // namespace fuseline::executor
