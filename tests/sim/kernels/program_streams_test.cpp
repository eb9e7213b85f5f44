#include "sim/kernels/program_streams.h"

#include <gtest/gtest.h>

#include <set>

#include "model/blocks/block.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

const Program& phase_of(const Plan& plan, const std::string& kernel) {
  for (const Kernel& k : plan.kernels) {
    if (k.name == kernel) return k.phases.front();
  }
  throw std::runtime_error("no kernel " + kernel);
}

TEST(AddressMap, WeightsAreNewInEveryLayerAndActivationsAreNot) {
  const Plan plan = make_plan("eager", small_llama(), forward(1, 64));
  AddressMap addresses(plan);
  const Operand weight = plan.graph.whole(*plan.graph.find_tensor("w_gate_up"));
  const Operand table = plan.graph.whole(*plan.graph.find_tensor("cos"));
  const Operand activation = plan.graph.whole(*plan.graph.find_tensor("gu"));
  std::set<std::uint32_t> weights, tables, activations;
  for (const std::int64_t layer : {0, 1, 2}) {
    addresses.enter_layer(layer);
    weights.insert(addresses.locate(weight).matrix.tensor);
    tables.insert(addresses.locate(table).matrix.tensor);
    activations.insert(addresses.locate(activation).matrix.tensor);
  }
  EXPECT_EQ(weights.size(), 3U);
  EXPECT_EQ(tables.size(), 1U);
  EXPECT_EQ(activations.size(), 1U);
}

TEST(AddressMap, ALayerReadsWhatTheOneBeforeWrote) {
  const Plan plan = make_plan("eager", small_llama(), forward(1, 64));
  AddressMap addresses(plan);
  const Operand x = plan.graph.whole(*plan.graph.find_tensor("x"));
  const Operand y = plan.graph.whole(*plan.graph.find_tensor("y"));
  std::uint32_t written = addresses.locate(y).matrix.tensor;
  EXPECT_NE(written, addresses.locate(x).matrix.tensor);
  for (const std::int64_t layer : {1, 2, 3, 4}) {
    addresses.enter_layer(layer);
    EXPECT_EQ(addresses.locate(x).matrix.tensor, written) << layer;
    written = addresses.locate(y).matrix.tensor;
  }
}

TEST(AddressMap, LiveTensorsNeverShareMemory) {
  for (const std::string& policy : kPolicies) {
    const Plan plan = make_plan(policy, small_llama(), forward(1, 64));
    const AddressMap addresses(plan);
    for (const Kernel& kernel : plan.kernels) {
      for (const Program& phase : kernel.phases) {
        // All operands of one program are alive together.
        std::map<std::uint32_t, std::set<std::int32_t>> tensors;
        for (const auto& operands : {loads(phase), stores(phase)}) {
          for (const Operand& o : operands) {
            tensors[addresses.locate(o).matrix.tensor].insert(o.tensor.index);
          }
        }
        for (const auto& [id, sharing] : tensors) {
          EXPECT_EQ(sharing.size(), 1U) << policy << ' ' << kernel.name << " id " << id;
        }
      }
    }
  }
}

// Under coda the entry norm's partial statistics are the layer before's last output: they are found
// where it stored them, as x is found where y was.
TEST(AddressMap, EveryCarriedOutputIsTheNextLayersInput) {
  for (const char* policy : {"unfused", "coda", "tensorrt-llm"}) {
    const Plan plan = make_plan(policy, small_llama(), forward(1, 64));
    const AddressMap addresses(plan);
    int carried = 0;
    for (const Related& r : plan.graph.relations()) {
      if (r.relation != Relation::carried_to_next_layer) continue;
      ++carried;
      const Operand out = plan.graph.whole(r.tensor);
      const Operand in = plan.graph.whole(r.to);
      for (std::int64_t layer = 0; layer < 3; ++layer) {
        EXPECT_EQ(addresses.locate(out, layer).matrix.tensor,
                  addresses.locate(in, layer + 1).matrix.tensor)
            << policy << ' ' << plan.graph.tensor(r.tensor).name;
      }
    }
    EXPECT_EQ(carried, std::string(policy) == "unfused" ? 1 : 2) << policy;
  }
}

TEST(Streams, HalvesOfHeadsMoveHalfTheBytes) {
  const Plan plan = make_plan("eager", small_llama(), forward(1, 64));
  const AddressMap addresses(plan);
  const std::vector<Stream> streams = streams_of(phase_of(plan, "rope_q_negate"), addresses);
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(streams[0].bytes(), Bytes(64 * 256 * 2 / 2));
  EXPECT_EQ(streams[1].bytes(), Bytes(64 * 256 * 2 / 2));
  EXPECT_TRUE(streams[1].store);
}

TEST(Streams, GatheredRowsMoveAsTheirIdsDo) {
  // 64 tokens: ids, as many rows of the table, and back all rows of its gradient.
  ModelConfig config = small_llama();
  config.V = 100;
  const Plan plan =
      make_plan("unfused", build_entry(config, {.phase = Phase::train, .batch = 1, .seq = 64}));
  const AddressMap addresses(plan);
  const std::vector<Stream> forward = streams_of(phase_of(plan, "embedding"), addresses);
  ASSERT_EQ(forward.size(), 3U);
  EXPECT_EQ(forward[0].bytes(), Bytes(64 * 4));
  EXPECT_EQ(forward[1].bytes(), Bytes(64 * 256 * 2));
  EXPECT_TRUE(forward[2].store);
  const std::vector<Stream> backward = streams_of(phase_of(plan, "dw_embedding"), addresses);
  ASSERT_EQ(backward.size(), 3U);
  EXPECT_EQ(backward[0].bytes(), Bytes(64 * 4));
  EXPECT_EQ(backward[1].bytes(), Bytes(64 * 256 * 2));
  EXPECT_EQ(backward[2].bytes(), Bytes(100 * 256 * 2));
}

TEST(GemmProblems, BatchedHeadsStartWhereTheirSequenceAndHeadLie) {
  // Given unfused attention of 2 sequences of 64 tokens, 4 heads on 2 key heads of width 64,
  const Plan plan = make_plan("unfused", small_llama(), forward(2, 64));
  const AddressMap addresses(plan);
  const GemmProblem scores = gemm_problem_of(phase_of(plan, "scores"), addresses, true);
  ASSERT_EQ(scores.batch, 8);
  EXPECT_EQ(scores.m, 64);
  EXPECT_EQ(scores.n, 64);
  EXPECT_EQ(scores.k, 64);
  // then GEMM 6 is sequence 1, head 2: key head 1.
  EXPECT_EQ(scores.a.origin(6).row, 64);
  EXPECT_EQ(scores.a.origin(6).col, 2 * 64);
  EXPECT_EQ(scores.b.origin(6).row, 64);
  EXPECT_EQ(scores.b.origin(6).col, 64);
  ASSERT_EQ(scores.epilogue.size(), 1U);
  EXPECT_EQ(scores.epilogue[0].origins[6].row, 6 * 64);  // scores are stacked by head
  EXPECT_EQ(scores.epilogue[0].origins[6].col, 0);
  const GemmProblem context = gemm_problem_of(phase_of(plan, "context"), addresses, true);
  EXPECT_TRUE(context.b.transposed);
  // V is the last slice of qkv: it begins after 4 query heads and 2 key heads.
  EXPECT_EQ(context.b.origin(6).col, (4 + 2 + 1) * 64);
  EXPECT_EQ(context.epilogue[0].origins[6].col, 2 * 64);
}

}  // namespace
}  // namespace fuseline
