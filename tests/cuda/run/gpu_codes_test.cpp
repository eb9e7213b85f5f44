// Products of codes on a real GPU against the executor.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/emit/kernel_source.h"
#include "cuda/run/stream_launch.h"
#include "model/activation_formats/stored_activation.h"
#include "model/cache_formats/stored_cache.h"
#include "model/operators/all_operators.h"
#include "model/operators/attributes.h"
#include "tests/cuda/run/gpu_support.h"
#include "tests/model/small_experts.h"
#include "tests/sim/plan_proof.h"

namespace fuseline::cuda {
namespace {

std::vector<std::string> formats() {
  std::vector<std::string> names = weight_format_names();
  for (const char* grouped : {"int4:16", "int4:0", "int4-zero:40", "int8:64"})
    names.emplace_back(grouped);
  return names;
}

class CodesTest : public test::GpuKernelTest {
 protected:
  // Products of the policies that have the most behind them and nothing.
  void check(SmTarget target, const ModelConfig& config, const Workload& work, int least = 7) {
    if (!use(target)) return;
    const executor::Workers workers;
    const Graph block = build_block(config, work);
    int programs = 0;
    for (const char* policy : {"coda", "unfused"}) {
      Plan plan = make_plan(policy, block);
      const auto inputs =
          executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
      auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
      test::ExecutedPlan executed(*device_, std::move(plan), std::move(done));
      for (const Kernel& kernel : executed.plan.kernels) programs += check_kernel(executed, kernel);
    }
    EXPECT_GE(programs, least);
  }
  int check_kernel(test::ExecutedPlan& executed, const Kernel& kernel);
  double worst_ = 0;
};

int CodesTest::check_kernel(test::ExecutedPlan& executed, const Kernel& kernel) {
  const Program& program = kernel.phases.at(0);
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr || !gemm->weight.quantised()) return 0;
  SCOPED_TRACE(executed.plan.policy + " " + kernel.name);
  for (const StoredTensorError& e :
       check_gemm(context(executed), program, {}, executed.tensors, *executed.execution.memory)) {
    EXPECT_TRUE(e.finite) << e.tensor;
    // Both multiply the same numbers and round once from fp32 sums in different orders: where a sum
    // lies next to a rounding boundary they differ by 2⁻⁸ of it, and few do.
    EXPECT_LT(e.relative_l2, 2e-3) << e.tensor;
    worst_ = std::max(worst_, e.relative_l2);
  }
  RecordProperty("worst_relative_l2", fmt::format("{:.2e}", worst_));
  return 1;
}

class SlowGpuCodes : public CodesTest, public testing::WithParamInterface<SmTarget> {};

using TargetAndFormat = std::tuple<SmTarget, std::string>;
class SlowGpuFormats : public CodesTest, public testing::WithParamInterface<TargetAndFormat> {};

TEST_P(SlowGpuFormats, EqualTheExecutor) {
  const auto& [target, name] = GetParam();
  Workload decode = fuseline::test::decode(3, 1, 60), forward = fuseline::test::forward(2, 75);
  decode.formats.weights = forward.formats.weights = parse_stored_weight(name, "", "");
  check(target, test::small_llama(), decode);
  check(target, test::small_llama(), forward);
}

// Biases; rows of every height of tile.
TEST_P(SlowGpuCodes, TilesOfEveryHeightEqualTheExecutor) {
  for (const std::int64_t batch : {2, 9, 17, 33, 70}) {
    Workload work = fuseline::test::decode(batch, 1, 30);
    work.formats.weights = parse_stored_weight("int4:32", "", "");
    check(GetParam(), test::small_gpt(), work);
  }
}

// K is long enough for clusters along it.
TEST_P(SlowGpuCodes, PartsOfKEqualTheExecutor) {
  ModelConfig c = test::small_llama();
  c.D = 2056;
  c.F = 4104;
  for (const char* name : {"int4", "fp8", "nvfp4"}) {
    Workload work = fuseline::test::decode(2, 1, 30);
    work.formats.weights = parse_stored_weight(name, "", "");
    check(GetParam(), c, work);
  }
}

// Mamba-2's product has parts with a function and a vector of their own, here of 19 columns.
TEST_P(SlowGpuCodes, PartsOfColumnsEqualTheExecutor) {
  ModelConfig model = load_model("mamba2-2.7b");
  model.D = 608;
  model.values["N"] = std::int64_t{64};
  Workload work = fuseline::test::decode(20, 1, 30);
  work.formats.weights = parse_stored_weight("int8", "", "");
  check(GetParam(), model, work, 4);
}

TEST_P(SlowGpuCodes, WeightsOfExpertsEqualTheExecutor) {
  for (const char* name : {"int4:64", "fp8", "mxfp4"}) {
    Workload few = fuseline::test::decode(3, 1, 60), many = fuseline::test::forward(1, 301);
    few.formats.weights = many.formats.weights = parse_stored_weight(name, "", "");
    check(GetParam(), fuseline::test::small_experts(), few);
    check(GetParam(), fuseline::test::small_experts(), many);
  }
}

// Blocks with Hopper's kernel whose thread blocks have all of K (sm90/codes_columns.cuh): K and the
// columns end inside a box and a strip; residuals, and sums along rows, one and two, of thread
// blocks that meet.
struct BlockOfFewRows {
  ModelConfig model;
  Workload work;
};
std::vector<BlockOfFewRows> blocks_of_few_rows(const std::string& weights) {
  ModelConfig llama = test::small_llama(), gpt = test::small_gpt();
  llama.D = gpt.D = 2184;
  llama.F = 4104;
  gpt.F = 2264;
  std::vector<BlockOfFewRows> blocks = {{llama, fuseline::test::decode(1, 1, 30)},
                                        {gpt, fuseline::test::decode(3, 1, 30)},
                                        {llama, fuseline::test::decode(8, 1, 30)}};
  for (BlockOfFewRows& b : blocks) b.work.formats.weights = parse_stored_weight(weights, "", "");
  return blocks;
}

class SlowGpuFewRows : public CodesTest, public testing::WithParamInterface<std::string> {};

TEST_P(SlowGpuFewRows, EqualTheExecutor) {
  for (const auto& [model, work] : blocks_of_few_rows(GetParam())) {
    SCOPED_TRACE(fmt::format("{} rows", work.batch));
    check(SmTarget::sm_90a, model, work);
  }
}

TEST(BlocksOfFewRows, HaveTheirKernel) {
  for (const char* weights : {"int8", "fp8", "int4", "int4:256"})
    for (const auto& [model, work] : blocks_of_few_rows(weights)) {
      SCOPED_TRACE(fmt::format("{}, {} rows", weights, work.batch));
      const Plan plan = make_plan("coda", build_block(model, work));
      int of_columns = 0, most_sums = 0;
      for (const Kernel& kernel : plan.kernels) {
        const Program& program = kernel.phases.at(0);
        const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
        if (gemm == nullptr || !gemm->weight.quantised()) continue;
        const GemmKernelSource source =
            gemm_kernel_source(plan.graph, program, {}, SmTarget::sm_90a, "test");
        if (!source.config.columns) continue;
        ++of_columns;
        most_sums = std::max(most_sums, source.row_sums);
      }
      EXPECT_GE(of_columns, work.batch < 8 ? 2 : 1);
      if (work.batch == 1) EXPECT_EQ(most_sums, 1);
      if (work.batch == 3) EXPECT_EQ(most_sums, 2);
    }
}

// Rows of ones and zeros take every weight out: its bits are the executor's.
TEST_P(SlowGpuFormats, HaveTheExecutorsBits) {
  const auto& [target, name] = GetParam();
  if (!use(target)) return;
  constexpr std::int64_t N = 150, K = 200;
  const StoredWeight weight = parse_stored_weight(name, "", "");
  fuseline::test::GraphByHand b;
  std::vector<Operand> reads = {b.tensor("x", Role::input, K, K)};
  const auto add = [&](const std::string& tensor, Dtype type, std::int64_t rows,
                       std::int64_t cols) {
    reads.push_back(b.graph.whole(b.graph.add_tensor(
        {.name = tensor, .role = Role::weight, .dtype = type, .rows = rows, .cols = cols})));
  };
  add("w", weight.element(), N, K);
  for (const ScaleTensor& t : weight.beside(N, K))
    add(std::string("w") + t.suffix, t.type, t.rows, t.cols);
  b.op("product", operators::gemm, reads, {b.tensor("y", Role::output, K, N)},
       GemmLayout{.weight = weight});
  Plan plan = make_plan("unfused", b.graph);
  const executor::Workers workers;
  executor::Inputs inputs = executor::random_storage(b.graph, 7, workers);
  auto ones = std::make_shared<executor::Storage>(Dtype::bf16, K, K);
  for (std::int64_t r = 0; r < K; ++r) {
    std::vector<float> row(K);
    row[static_cast<std::size_t>(r)] = 1;
    ones->write(r, 0, K, row.data());
  }
  inputs["x"] = ones;
  auto done = executor::execute(plan, executor::prepare_inputs(plan, inputs, 7, workers),
                                load_gpu("h200"), {.workers = workers});
  test::ExecutedPlan executed(*device_, std::move(plan), std::move(done));
  const Program& program = executed.plan.kernels.at(0).phases.at(0);
  for (const StoredTensorError& e :
       check_gemm(context(executed), program, {}, executed.tensors, *executed.execution.memory)) {
    EXPECT_TRUE(e.finite);
    EXPECT_EQ(e.relative_l2, 0.0);
  }
}

// Every kernel of a plan whose caches, activations or weights are codes.
class SlowGpuCodePlans : public CodesTest, public testing::WithParamInterface<SmTarget> {
 protected:
  // `stores_codes`: caches and activations are written by the plan, weights are not.
  void check_plan(const std::string& policy, const ModelConfig& config, const Workload& work,
                  bool stores_codes = true) {
    if (!use(GetParam())) return;
    SCOPED_TRACE(policy);
    const executor::Workers workers;
    const Graph block = build_block(config, work);
    Plan plan = make_plan(policy, block);
    const auto inputs =
        executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
    auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
    test::ExecutedPlan executed(*device_, std::move(plan), std::move(done));
    int in_codes = 0;
    for (const Kernel& kernel : executed.plan.kernels) {
      SCOPED_TRACE(kernel.name);
      for (const StoredTensorError& e : errors_of(executed, kernel.phases.at(0))) {
        const Tensor& t = executed.plan.graph.tensor(*executed.plan.graph.find_tensor(e.tensor));
        const bool codes = size_of(t.dtype).bits() == 8;
        in_codes += codes ? 1 : 0;
        EXPECT_TRUE(e.finite) << e.tensor;
        // A number beside a boundary of codes lands on its other side: a step of 2⁻³ of a number of
        // e4m3 and 1 / 127 of the largest of int8. One number in 300 may, so √(1 / 300) · 2⁻³ / √3.
        // Attention: gpu_attention_test.cpp.
        const bool attention =
            std::holds_alternative<AttentionMainloop>(kernel.phases.at(0).mainloop);
        EXPECT_LT(e.relative_l2, codes ? 4e-3 : attention ? 6.6e-3 : 2e-3) << e.tensor;
      }
    }
    EXPECT_EQ(in_codes > 1, stores_codes);
  }
  std::vector<StoredTensorError> errors_of(test::ExecutedPlan& p, const Program& program) {
    const executor::Memory& memory = *p.execution.memory;
    if (std::holds_alternative<GemmMainloop>(program.mainloop))
      return check_gemm(context(p), program, {.m = 128, .n = 128}, p.tensors, memory);
    if (std::holds_alternative<AttentionMainloop>(program.mainloop))
      return check_attention(context(p), program, p.tensors, memory);
    const LaunchContext c = context(p);
    const StreamKernelSource source = stream_kernel_source(p.plan.graph, program, "test");
    return check_launches(c, program, prepare_stream(c, source, program), p.tensors, memory);
  }
};

TEST_P(SlowGpuCodePlans, OfCachesEqualTheExecutor) {
  for (const char* format : {"fp8", "int8"})
    for (const std::int64_t tokens : {1, 5, 37}) {
      SCOPED_TRACE(fmt::format("{}, {} tokens", format, tokens));
      Workload work = fuseline::test::decode(2, tokens, 333);
      work.formats.cache = parse_stored_cache(format, "", "");
      check_plan("per-operator", test::small_llama(), work);
      if (tokens == 1 && std::string(format) == "fp8")
        check_plan("coda", test::small_llama(), work);
    }
  Workload work = fuseline::test::decode(1, 1, 1500);
  work.formats.cache = parse_stored_cache("int8", "", "");
  ModelConfig wide = test::small_llama();
  wide.d = 128;
  check_plan("per-operator", wide, work);
}

TEST_P(SlowGpuCodePlans, OfActivationsEqualTheExecutor) {
  for (const char* format : {"fp8", "fp8-block", "int8"})
    for (const Workload& shape :
         {fuseline::test::decode(3, 1, 60), fuseline::test::forward(2, 75)}) {
      SCOPED_TRACE(format);
      Workload work = shape;
      work.formats.activations = parse_stored_activation(format, "", "");
      work.formats.weights = parse_stored_weight(weights_for(work.formats.activations), "", "");
      ModelConfig config = test::small_llama();
      config.D = config.F = 384;
      config.d = 64;
      check_plan("per-operator", config, work);
      if (std::string(format) != "fp8-block") check_plan("coda", config, work);
    }
}

// Codes by codes in every kind of tile of Hopper's mainloop, behind it coda's epilogues. Sums of K
// codes keep about 14 bits: at 384 and 768 columns a result differs by 1.1e-3 to 1.4e-3 once it is
// rounded, as one does beside a rounding boundary (docs/numerics.md).
TEST_P(SlowGpuCodePlans, OfEveryKindOfTileEqualTheExecutor) {
  if (!use(GetParam())) return;
  Workload work = fuseline::test::forward(3, 111);
  work.formats.activations = parse_stored_activation("fp8", "", "");
  work.formats.weights = parse_stored_weight("fp8", "", "");
  ModelConfig config = test::small_llama();
  config.D = 384;
  config.F = 768;
  config.d = 64;
  const executor::Workers workers;
  const Graph block = build_block(config, work);
  Plan plan = make_plan("coda", block);
  const auto inputs =
      executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
  auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
  test::ExecutedPlan executed(*device_, std::move(plan), std::move(done));
  int products = 0;
  for (const Kernel& kernel : executed.plan.kernels) {
    const Program& program = kernel.phases.at(0);
    if (!std::holds_alternative<GemmMainloop>(program.mainloop)) continue;
    ++products;
    for (const GemmTile& tile :
         {GemmTile{.m = 128, .n = 256, .cluster_m = 2}, GemmTile{.m = 128, .n = 192},
          GemmTile{.m = 128, .n = 128, .tail_parts = 3},
          GemmTile{.m = 64, .n = 256, .cluster_m = 2}, GemmTile{.m = 64, .n = 64},
          GemmTile{.m = 64, .n = 128, .cluster_k = 2},
          GemmTile{.m = 128, .n = 256, .cluster_n = 2}})
      for (const StoredTensorError& e : check_gemm(context(executed), program, tile,
                                                   executed.tensors, *executed.execution.memory)) {
        EXPECT_TRUE(e.finite) << e.tensor;
        EXPECT_LT(e.relative_l2, 2e-3) << kernel.name << " " << tile.m << " x " << tile.n;
      }
  }
  EXPECT_EQ(products, 4);
}

// Rows of gate and of up take turns, each with the scales of its own blocks.
TEST_P(SlowGpuCodePlans, OfPairsWithScalesOfTwoBlocksEqualTheExecutor) {
  for (const Workload& shape : {fuseline::test::decode(3, 1, 60), fuseline::test::forward(2, 75)}) {
    Workload work = shape;
    work.formats.weights = parse_stored_weight("fp8-block", "", "");
    ModelConfig config = test::small_llama();
    config.D = config.F = 384;
    config.d = 64;
    check_plan("coda", config, work, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Slow, SlowGpuCodePlans, testing::Values(SmTarget::sm_90a, SmTarget::sm_80),
                         [](const auto& p) { return name_of(p.param); });
INSTANTIATE_TEST_SUITE_P(Slow, SlowGpuFormats,
                         testing::Combine(testing::Values(SmTarget::sm_90a, SmTarget::sm_80),
                                          testing::ValuesIn(formats())),
                         [](const auto& p) {
                           std::string name = name_of(std::get<0>(p.param));
                           for (const char c : "_" + std::get<1>(p.param))
                             name += std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });
INSTANTIATE_TEST_SUITE_P(Slow, SlowGpuFewRows, testing::Values("int8", "fp8", "int4", "int4:256"),
                         [](const auto& p) {
                           std::string name;
                           for (const char c : p.param) name += std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });
INSTANTIATE_TEST_SUITE_P(Slow, SlowGpuCodes, testing::Values(SmTarget::sm_90a, SmTarget::sm_80),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace fuseline::cuda
