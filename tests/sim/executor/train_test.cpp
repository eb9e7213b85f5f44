// Training plans execute on the CPU: every gradient against fp64, bytes against the simulator,
// threads against each other.
#include <gtest/gtest.h>

#include <random>

#include "model/blocks/block.h"
#include "model/operators/operator_table.h"
#include "model/prepare.h"
#include "sim/executor/column_order.h"
#include "sim/executor/inputs.h"
#include "sim/executor/reference_fast.h"
#include "sim/executor/tensor_error.h"
#include "tests/model/plan_support.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::executor {
namespace {

using test::describe;
using test::random_training_block;
using test::RandomBlock;

// Output and every gradient, in the order of the block's own weights.
void expect_gradients(const RandomCase& c, const Execution& e, const std::string& what) {
  const TensorValues reference = fast_reference(c.block, c.inputs, {});
  const std::map<TensorId, TensorOrder> orders = tensor_orders(c.plan);
  // fp32: the operators' tolerances add up along the way.
  double bound = 0;
  for (const Op& op : c.block.ops()) bound += tolerance(c.block, op);
  std::size_t compared = 0;
  for (std::size_t t = 0; t < c.block.tensors().size(); ++t) {
    const Tensor& tensor = c.block.tensors()[t];
    if (tensor.role != Role::output) continue;
    const TensorId id = c.plan.graph.find_tensor(tensor.name).value();
    const auto order = orders.find(id);
    const TensorError error = compare(e.memory->at(id), reference.at(tensor.name), 0, tensor.cols,
                                      order == orders.end() ? TensorOrder{} : order->second);
    EXPECT_LT(error.relative_l2, bound) << tensor.name << ' ' << what;
    EXPECT_TRUE(!error.all_equal || tensor.rows * tensor.cols == 1) << tensor.name << ' ' << what;
    ++compared;
  }
  EXPECT_GE(compared, 7U) << what;
}

class EveryTrainingPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryTrainingPolicy, GradientsAgreeWithFp64OnRandomBlocks) {
  std::mt19937 random(2025);
  for (int i = 0; i < 15; ++i) {
    RandomBlock b = random_training_block(random);
    b.work.dtype = Dtype::fp32;
    const RandomCase c = random_case(GetParam(), b);
    expect_gradients(c, run(c), describe(b) + " block " + std::to_string(i));
  }
}

TEST_P(EveryTrainingPolicy, CountsTheBytesThatTheSimulatorPredicts) {
  std::mt19937 random(11);
  for (int i = 0; i < 30; ++i) {
    const RandomBlock b = random_training_block(random);
    const RandomCase c = random_case(GetParam(), b);
    expect_predicted_bytes(c.plan, run(c), describe(b));
  }
}

// Several tiles along every dimension, none of them full at the edges: heads that share keys, a
// window shorter than two key tiles, biases, LayerNorm.
std::vector<RandomBlock> training_blocks_of_many_tiles() {
  std::vector<RandomBlock> blocks;
  RandomBlock b{test::tiny_llama(), test::train(1, 290)};
  b.config.D = 200;
  b.config.F = 150;
  b.config.H = 4;
  b.config.Hkv = 2;
  b.config.d = 48;  // does not divide the 256 columns of a stream tile
  blocks.push_back(b);
  b.config.sliding_window = 140;
  b.config.qkv_bias = true;
  b.work = test::train(2, 150);
  blocks.push_back(b);
  RandomBlock gpt{test::tiny_gpt(), test::train(1, 260)};
  gpt.config.D = 140;
  gpt.config.F = 150;
  gpt.config.d = 50;
  blocks.push_back(gpt);
  return blocks;
}

TEST_P(EveryTrainingPolicy, BlocksOfManyTilesAgreeCountAndDoNotDependOnThreads) {
  for (RandomBlock b : training_blocks_of_many_tiles()) {
    b.work.dtype = Dtype::fp32;
    const RandomCase c = random_case(GetParam(), b);
    const Execution one = run(c, 1);
    expect_gradients(c, one, describe(b));
    expect_predicted_bytes(c.plan, one, describe(b));
    for (const int threads : {2, 3}) expect_same_bits(c.plan, one, run(c, threads), describe(b));
  }
}

INSTANTIATE_TEST_SUITE_P(Executor, EveryTrainingPolicy,
                         ::testing::ValuesIn(test::training_policies()),
                         [](const auto& policy) { return as_test_name(policy.param); });

TEST(Gradients, ComeInTheOrderThatRestoreUndoes) {
  // Given numbers in the order of coda's reordered weights,
  const RandomBlock b{test::tiny_llama(), test::train(1, 8)};
  const Plan plan = make_plan("coda", b.config, b.work);
  ASSERT_FALSE(plan.preparation.results.empty());
  const std::map<TensorId, TensorOrder> orders = tensor_orders(plan);
  for (const Interleaving& how : plan.preparation.results) {
    const TensorId id = plan.graph.find_tensor(how.tensor).value();
    const Tensor& t = plan.graph.tensor(id);
    NamedTensors values;
    std::vector<double>& numbers = values[how.tensor];
    for (std::int64_t i = 0; i < t.rows * t.cols; ++i) numbers.push_back(static_cast<double>(i));
    const std::vector<double> planned = numbers;
    Preparation only = plan.preparation;
    std::erase_if(only.results, [&](const Interleaving& i) { return i.tensor != how.tensor; });
    // when restored,
    const std::vector<double> own = restore(only, plan.graph, values).at(how.tensor);
    // then each is where its order says.
    const TensorOrder& order = orders.at(id);
    for (std::int64_t r = 0; r < t.rows; ++r) {
      for (std::int64_t col = 0; col < t.cols; ++col) {
        const std::int64_t row = order.rows.empty() ? r : order.rows[static_cast<std::size_t>(r)];
        const std::int64_t to =
            order.cols.empty() ? col : order.cols[static_cast<std::size_t>(col)];
        ASSERT_EQ(planned[static_cast<std::size_t>(r * t.cols + col)],
                  own[static_cast<std::size_t>(row * t.cols + to)])
            << how.tensor;
      }
    }
  }
}

}  // namespace
}  // namespace fuseline::executor
