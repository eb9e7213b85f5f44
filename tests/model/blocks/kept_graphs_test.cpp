// Graphs that were built a moment ago are given again; whoever changes one changes their own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

// All sizes of the graph.
std::vector<std::string> all_sizes_of(const Graph& graph) {
  std::vector<std::string> out;
  for (const Tensor& t : graph.tensors())
    out.push_back(t.name + " " + std::to_string(t.rows) + " x " + std::to_string(t.cols) + " " +
                  std::to_string(t.bytes().value()));
  for (const Op& op : graph.ops()) out.push_back(op.name);
  return out;
}

TEST(KeptGraphs, AreThoseOfTheirOwnSizes) {
  ModelConfig narrow = test::tiny_llama(), wide = narrow;
  wide.F += 8;
  ModelConfig windowed = narrow;
  windowed.sliding_window = 2;
  Workload in_codes = test::forward(2, 3);
  in_codes.formats.weights = parse_stored_weight("int8", "--weights", "bf16");
  Workload training = test::forward(2, 3);
  training.phase = Phase::train;
  // Twice: the second turn finds them built.
  for (int turn = 0; turn < 2; ++turn) {
    for (const ModelConfig& config : {narrow, wide, windowed}) {
      for (const Workload& work : {test::forward(2, 3), test::forward(3, 2), in_codes, training}) {
        const BlockUse& use = config.blocks.front();
        Graph fresh = build_graph(*text_of(use), block_values(config, use), work);
        if (work.phase == Phase::train) fresh = differentiate(fresh);
        EXPECT_EQ(all_sizes_of(build_block(config, work)), all_sizes_of(fresh));
      }
    }
  }
}

TEST(KeptGraphs, StayAsTheyWereBuilt) {
  const ModelConfig config = test::tiny_llama();
  Graph mine = build_block(config, test::forward(2, 3));
  const std::vector<std::string> before = all_sizes_of(mine);
  mine.tensor(TensorId{0}).rows += 1;
  EXPECT_NE(all_sizes_of(mine), before);
  EXPECT_EQ(all_sizes_of(build_block(config, test::forward(2, 3))), before);
}

}  // namespace
}  // namespace fuseline
