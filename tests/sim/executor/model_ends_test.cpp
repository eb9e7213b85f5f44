// The model's ends in training: embedding, LM head and loss with their gradients, under every
// policy that trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/executor/reference_fast.h"
#include "sim/executor/schedule.h"
#include "tests/model/plan_support.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::executor {
namespace {

using test::describe;
using test::random_training_block;
using test::RandomBlock;

constexpr std::uint64_t kEndsSeed = 23;

// Of each kernel: tensor → loaded, stored.
using Counts = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

Counts counts(const Graph& graph, const std::vector<RequestedBytes>& moved) {
  Counts c;
  for (const RequestedBytes& r : moved) {
    if (r.loaded.value() == 0 && r.stored.value() == 0) continue;
    auto& entry = c[graph.tensor(r.tensor).name];
    entry.first += r.loaded.value();
    entry.second += r.stored.value();
  }
  return c;
}

std::vector<Graph> ends(const RandomBlock& b) {
  return {build_entry(b.config, b.work), build_exit(b.config, b.work)};
}

Execution run(const Plan& plan, const Inputs& given, const Gpu& gpu, int threads = 1) {
  ExecuteOptions options;
  options.workers = {.threads = threads, .stop = nullptr, .short_loops_too = true};
  return execute(plan, prepare_inputs(plan, given, kEndsSeed, {}), gpu, options);
}

// Every output of the graph against fp64, by relative L2.
void expect_outputs(const Graph& graph, const Plan& plan, const Execution& e,
                    const TensorValues& reference, double tolerance, const std::string& what) {
  std::size_t outputs = 0;
  for (const Tensor& t : graph.tensors()) {
    if (t.role != Role::output) continue;
    ++outputs;
    const std::vector<double> got = to_doubles(e.memory->at(*plan.graph.find_tensor(t.name)));
    EXPECT_EQ(disagreement(got, reference.at(t.name), tolerance), "") << t.name << ' ' << what;
  }
  EXPECT_GE(outputs, 2U);
}

void expect_predicted_bytes(const Plan& plan, const Execution& e, const Gpu& gpu,
                            const std::string& what) {
  const PlanEstimate predicted = simulate(plan, gpu, Fidelity::hierarchy);
  EXPECT_EQ(e.launches, predicted.launches) << what;
  std::size_t k = 0;
  for (const KernelEstimate& kernel : predicted.kernels) {
    if (kernel.requested.empty()) continue;  // a launch that joins splits
    ASSERT_LT(k, e.kernels.size());
    EXPECT_EQ(counts(plan.graph, e.kernels[k].moved), counts(plan.graph, kernel.requested))
        << what << " kernel " << kernel.name;
    ++k;
  }
  EXPECT_EQ(k, e.kernels.size());
}

class TrainedEnds : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainedEnds, AgreeWithFp64AndCountTheirBytes) {
  std::mt19937 random(31);
  for (int i = 0; i < 12; ++i) {
    RandomBlock b = random_training_block(random);
    b.config.V = test::pick(random, 2, 400);  // up to four tiles of logits
    b.work.dtype = Dtype::fp32;
    for (const Graph& graph : ends(b)) {
      const Inputs given = random_storage(graph, kEndsSeed, {});
      const TensorValues reference = fast_reference(graph, given, {});
      const Plan plan = make_plan(GetParam(), graph);
      const Execution e = run(plan, given, executor_gpu());
      const std::string what = describe(b) + " V " + std::to_string(b.config.V);
      // A chain of some ten operators in fp32: 2^-24·(2·sqrt(400) + 8) each.
      expect_outputs(graph, plan, e, reference, 3e-5, what);
      expect_predicted_bytes(plan, e, executor_gpu(), what);
    }
  }
}

TEST_P(TrainedEnds, In16BitsStayNearTheUnfusedPlan) {
  RandomBlock b{test::tiny_llama(), test::train(2, 50)};
  b.config.D = 200;
  b.config.V = 300;
  const Graph graph = build_exit(b.config, b.work);
  const Inputs given = random_storage(graph, kEndsSeed, {});
  const TensorValues reference = fast_reference(graph, given, {});
  const auto errors = [&](const std::string& policy) {
    const Plan plan = make_plan(policy, graph);
    const Execution e = run(plan, given, executor_gpu());
    std::map<std::string, double> by_name;
    for (const char* name : {"loss", "dx", "dw_lm_head", "dw_final_norm"})
      by_name[name] =
          relative_l2(to_doubles(e.memory->at(*plan.graph.find_tensor(name))), reference.at(name));
    return by_name;
  };
  const auto unfused = errors("unfused");
  for (const auto& [name, error] : errors(GetParam())) {
    EXPECT_LT(error, 2 * unfused.at(name)) << name;
    EXPECT_GT(error, 1e-5) << name << ": nothing was rounded";
  }
}

// Tiles of 64 columns, where two share a partial, and of 128 and more; any number of threads.
TEST_P(TrainedEnds, AreTheSameBitsForAnyNumberOfThreads) {
  RandomBlock b{test::tiny_gpt(), test::train(3, 50)};
  b.config.V = 330;
  b.config.max_positions = 60;
  for (const char* name : {"h200", "a100"}) {
    const Gpu gpu = load_gpu(name);
    for (const Graph& graph : ends(b)) {
      const Inputs given = random_storage(graph, kEndsSeed, {});
      const Plan plan = make_plan(GetParam(), graph);
      const Execution one = run(plan, given, gpu, 1);
      const Execution many = run(plan, given, gpu, 3);
      for (const Tensor& t : graph.tensors()) {
        if (t.role != Role::output) continue;
        const TensorId id = *plan.graph.find_tensor(t.name);
        EXPECT_EQ(to_doubles(one.memory->at(id)), to_doubles(many.memory->at(id))) << t.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Executor, TrainedEnds, ::testing::ValuesIn(test::training_policies()),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::erase(name, '-');
                           return name;
                         });

// Our mainloop on Ampere has tiles of 64 columns.
TEST(LogSumExpOfTwoTiles, JoinsWhatTheyLeft) {
  RandomBlock b{test::tiny_llama(), test::train(1, 40)};
  b.config.V = 330;
  b.work.dtype = Dtype::fp32;
  const Gpu gpu = load_gpu("a100");
  const Graph graph = build_exit(b.config, b.work);
  const Plan plan = make_plan("coda", graph);
  const auto head = std::ranges::find(plan.kernels, "lm_head", &Kernel::name);
  ASSERT_NE(head, plan.kernels.end());
  const TileShape tile = schedule_phase(*head, head->phases[0], AddressMap(plan), gpu).tile;
  ASSERT_NE(tile.n % partial_tile, 0) << "tiles own their partials";
  const Inputs given = random_storage(graph, kEndsSeed, {});
  const TensorValues reference = fast_reference(graph, given, {});
  const Execution e = run(plan, given, gpu, 2);
  expect_outputs(graph, plan, e, reference, 3e-5, "a100");
}

}  // namespace
}  // namespace fuseline::executor
