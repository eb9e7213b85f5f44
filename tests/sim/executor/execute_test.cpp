// Every policy's plan executes on the CPU: numbers against fp64, bytes against the simulator,
// threads against each other.
#include "sim/executor/execute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/executor/inputs.h"
#include "sim/executor/reference_fast.h"
#include "sim/executor/schedule.h"
#include "tests/model/plan_support.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::executor {
namespace {

using test::describe;
using test::random_block;
using test::RandomBlock;

double error_of(const RandomCase& c, const Execution& e, const TensorValues& reference,
                const std::string& tensor) {
  const std::vector<double> got = to_doubles(e.memory->at(*c.plan.graph.find_tensor(tensor)));
  return relative_l2(got, reference.at(tensor));
}

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, AgreesWithFp64OnRandomBlocks) {
  std::mt19937 random(2024);
  for (int i = 0; i < 25; ++i) {
    RandomBlock b = random_block(random);
    b.work.dtype = Dtype::fp32;
    const RandomCase c = random_case(GetParam(), b);
    const TensorValues reference = fast_reference(c.block, c.inputs, {});
    const Execution e = run(c);
    // A chain of about ten operators in fp32, each with a relative error of some 2^-24·sqrt(300).
    EXPECT_LT(error_of(c, e, reference, "y"), 2e-5) << describe(b) << " block " << i;
  }
}

TEST_P(EveryPolicy, CountsTheBytesThatTheSimulatorPredicts) {
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    const RandomBlock b = random_block(random);
    const RandomCase c = random_case(GetParam(), b);
    expect_predicted_bytes(c.plan, run(c), describe(b));
  }
}

// Several tiles along every dimension, none of them full at the edges.
std::vector<RandomBlock> blocks_of_many_tiles() {
  std::vector<RandomBlock> blocks;
  RandomBlock b{test::tiny_llama(), test::forward(2, 150)};
  b.config.D = 300;
  b.config.F = 330;
  b.config.H = 6;
  b.config.Hkv = 2;
  b.config.d = 48;  // does not divide the 256 columns of a stream tile
  blocks.push_back(b);
  b.config.sliding_window = 70;
  blocks.push_back(b);
  b.work = test::decode(3, 2, 700);
  blocks.push_back(b);
  b.config.sliding_window = 0;
  b.work = test::decode(1, 1, 1500);  // split over the keys
  blocks.push_back(b);
  RandomBlock gpt{test::tiny_gpt(), test::forward(1, 140)};
  gpt.config.D = 140;
  gpt.config.F = 300;
  gpt.config.d = 50;
  blocks.push_back(gpt);
  gpt.work = test::decode(2, 1, 1300);
  blocks.push_back(gpt);
  return blocks;
}

TEST_P(EveryPolicy, BlocksOfManyTilesAgreeAndCount) {
  for (RandomBlock b : blocks_of_many_tiles()) {
    b.work.dtype = Dtype::fp32;
    const RandomCase c = random_case(GetParam(), b);
    const TensorValues reference = fast_reference(c.block, c.inputs, {});
    const Execution e = run(c, 2);
    EXPECT_LT(error_of(c, e, reference, "y"), 2e-5) << describe(b);
    expect_predicted_bytes(c.plan, e, describe(b));
  }
}

TEST_P(EveryPolicy, TheNumberOfThreadsChangesNoBit) {
  for (const RandomBlock& b : blocks_of_many_tiles()) {
    const RandomCase c = random_case(GetParam(), b);
    const Execution one = run(c, 1);
    for (const int threads : {2, 5}) {
      const Execution many = run(c, threads);
      expect_same_bits(c.plan, one, many, describe(b) + ' ' + std::to_string(threads) + " threads");
    }
  }
}

// GPUs whose mainloops have tiles of 64 columns: two tiles share a partial of 128.
TEST(PartialsOfSeveralTiles, JoinInTileOrder) {
  for (const char* gpu : {"a100", "rtx4090"}) {
    RandomBlock b{test::tiny_llama(), test::forward(1, 70)};
    b.config.D = 330;
    b.work.dtype = Dtype::fp32;
    const RandomCase c = random_case("coda", b);
    const TensorValues reference = fast_reference(c.block, c.inputs, {});
    const Inputs inputs = prepare_inputs(c.plan, c.inputs, kInputsSeed, {});
    const Gpu device = load_gpu(gpu);
    const AddressMap addresses(c.plan);
    bool shared = false;
    for (const Kernel& kernel : c.plan.kernels) {
      const Program& phase = kernel.phases[0];
      const bool partials = std::any_of(phase.body.begin(), phase.body.end(),
                                        [](const Primitive& p) { return p.is<TileReduce>(); });
      const TileShape tile = schedule_phase(kernel, phase, addresses, device).tile;
      shared = shared || (partials && tile.n % partial_tile != 0);
    }
    ASSERT_TRUE(shared) << gpu << " chose tiles that own their partials";
    std::vector<double> first;
    for (const int threads : {1, 3}) {
      ExecuteOptions options;
      options.workers.threads = threads;
      options.workers.short_loops_too = true;
      const Execution e = execute(c.plan, inputs, device, options);
      EXPECT_LT(error_of(c, e, reference, "y"), 2e-5) << gpu;
      const std::vector<double> y = to_doubles(e.memory->at(*c.plan.graph.find_tensor("y")));
      if (first.empty()) first = y;
      EXPECT_EQ(y, first) << gpu << ' ' << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Executor, EveryPolicy, ::testing::ValuesIn(all_policies()),
                         [](const auto& policy) { return as_test_name(policy.param); });

}  // namespace
}  // namespace fuseline::executor
