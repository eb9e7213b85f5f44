// A primitive from outside runs, and moves the bytes that it says.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fuseline::executor
