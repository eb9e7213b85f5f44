// Scans and convolutions on a real GPU, against the executor, over odd shapes. Skipped, with the
// reason, where there is no GPU.
#include <gtest/gtest.h>

#include <random>

#include "cuda/emit/not_built.h"
#include "cuda/run/block_on_gpu.h"
#include "cuda/run/scan_launch.h"
#include "model/backward.h"
#include "tests/cuda/run/gpu_support.h"
#include "tests/model/scan_support.h"

namespace fuseline::cuda {
namespace {

class SlowGpuScan : public test::GpuKernelTest {
 protected:
  // A graph of one operator, as a plan that runs from its inputs: a state may be overwritten.
  void check(const Graph& graph, std::mt19937& random, const std::string& what) {
    SCOPED_TRACE(what);
    const Gpu gpu = load_gpu("h200");
    const Plan plan = make_plan("per-operator", graph);
    const executor::Inputs inputs =
        executor::round_inputs(graph, fuseline::test::scan_inputs(graph, random));
    const executor::Execution want = executor::execute(plan, inputs, gpu, {});
    BlockOnGpu block(*device_, *store_, plan, gpu, 1, {});
    block.give(inputs);
    Stream stream = device_->stream();
    block.run_step_by_step(stream);
    const auto got = block.result(inputs);
    for (const Operand& o : graph.ops()[0].writes) compare(o, *got, *want.memory, graph);
  }

  // Both compute in fp32, in different orders, and round once.
  static void compare(const Operand& o, const executor::Memory& got, const executor::Memory& want,
                      const Graph& graph) {
    const Tensor& t = graph.tensor(o.tensor);
    std::vector<float> a(static_cast<std::size_t>(t.cols)), b(a.size());
    double difference = 0, size = 0;
    for (std::int64_t r = 0; r < t.rows; ++r) {
      got.at(o.tensor).read(r, 0, t.cols, a.data());
      want.at(o.tensor).read(r, 0, t.cols, b.data());
      for (std::size_t c = 0; c < a.size(); ++c) {
        ASSERT_TRUE(std::isfinite(a[c])) << t.name << " row " << r << " column " << c;
        difference += std::pow(static_cast<double>(a[c]) - static_cast<double>(b[c]), 2);
        size += std::pow(static_cast<double>(b[c]), 2);
      }
    }
    EXPECT_GT(size, 0) << t.name;
    EXPECT_LT(std::sqrt(difference / size), t.dtype == Dtype::fp32 ? 1e-4 : 2e-3) << t.name;
  }
};

TEST_F(SlowGpuScan, RandomScansEqualTheExecutor) {
  if (!use(SmTarget::sm_80)) return;
  std::mt19937 random(71);
  for (int round = 0; round < 24; ++round) {
    const fuseline::test::ScanCase c = fuseline::test::random_scan(random);
    const std::string what = fuseline::test::describe(c);
    if (round % 3 == 0)
      check(fuseline::test::scan_graph(c), random, what);
    else
      check(fuseline::test::selective_graph(c, round % 3 == 1), random, what + " by rates");
  }
}

// Whole chunks and a part of one, states in many lanes, groups that share thread blocks.
TEST_F(SlowGpuScan, ScansOfRealWidthsEqualTheExecutor) {
  if (!use(SmTarget::sm_80)) return;
  std::mt19937 random(72);
  for (const Dtype type : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
    for (const ScanShape& s :
         {ScanShape{6, 1, 64, 128, 2, 333, 64}, ScanShape{6, 2, 64, 128, 2, 70, 64},
          ScanShape{6, 3, 20, 40, 1, 65, 16}, ScanShape{2, 1, 4, 1024, 1, 9, 4}}) {
      const fuseline::test::ScanCase c{s, true, true, type};
      check(fuseline::test::selective_graph(c, false), random, fuseline::test::describe(c));
      check(fuseline::test::scan_graph(c), random, fuseline::test::describe(c));
    }
  const fuseline::test::ScanCase mamba{{200, 1, 1, 16, 3, 333, 64}, true, true, Dtype::bf16};
  check(fuseline::test::selective_graph(mamba, true), random, fuseline::test::describe(mamba));
}

// Chunks on the tensor cores: every width of a thread block, groups, parts of a chunk, from a state
// and from none.
TEST_F(SlowGpuScan, ChunksEqualTheExecutor) {
  if (!use(SmTarget::sm_80)) return;
  std::mt19937 random(74);
  for (int round = 0; round < 24; ++round) {
    const std::int64_t cols = std::int64_t{16} << round % 3;  // of a block, or more
    ScanShape s;
    s.groups = fuseline::test::pick(random, 1, 3);
    s.heads = s.groups * fuseline::test::pick(random, 1, 3);
    s.head_width = cols * fuseline::test::pick(random, 1, 2);
    s.state_width = 64 * fuseline::test::pick(random, 1, 2);
    s.batch = fuseline::test::pick(random, 1, 3);
    s.tokens = fuseline::test::pick(random, 16, 260);
    s.chunk = 64;
    const fuseline::test::ScanCase c{s, random() % 2 == 0, random() % 2 == 0, Dtype::bf16};
    const std::string what = fuseline::test::describe(c);
    check(
        round % 2 == 0 ? fuseline::test::scan_graph(c) : fuseline::test::selective_graph(c, false),
        random, what);
  }
  // As many heads as multiprocessors: a thread block has a whole head.
  const fuseline::test::ScanCase many{{140, 2, 64, 128, 1, 130, 256}, true, true, Dtype::bf16};
  check(fuseline::test::scan_graph(many), random, fuseline::test::describe(many));
}

// The forward pass that keeps states, and the gradient that begins with them, each with what the
// executor had. Both compute in fp32 in different orders: sums over tokens, columns and heads.
class SlowGpuScanGradient : public test::GpuKernelTest {
 protected:
  void check(const fuseline::test::ScanCase& c, bool columns) {
    SCOPED_TRACE(fuseline::test::describe(c) + (columns ? " columns" : ""));
    const Graph graph = differentiate(fuseline::test::scan_of_steps(c, columns));
    const executor::Workers workers;
    const auto inputs = executor::random_storage(graph, 7, workers);
    Plan plan = make_plan("per-operator", graph);
    const auto given = executor::prepare_inputs(plan, inputs, 7, workers);
    auto done = executor::execute(plan, given, load_gpu("h200"), {.workers = workers});
    test::ExecutedPlan p(*device_, std::move(plan), std::move(done));
    const DeviceInfo& info = device_->info();
    for (const Kernel& kernel : p.plan.kernels) {
      const Program& program = kernel.phases.front();
      const auto* scan = std::get_if<ScanMainloop>(&program.mainloop);
      if (scan == nullptr || !not_built(program).empty()) continue;
      ++(scan->gradient ? gradients_ : kept_);
      const ScanKernelSource source = scan_kernel_source(
          p.plan.graph, program, "A test.", info.shared_per_block.value(), info.multiprocessors);
      const LaunchContext here = context(p);
      for (const StoredTensorError& e :
           check_launches(here, program, prepare_scan(here, source, program), p.tensors,
                          *p.execution.memory)) {
        EXPECT_TRUE(e.finite) << e.tensor;
        const bool rounded =
            p.plan.graph.tensor(*p.plan.graph.find_tensor(e.tensor)).dtype != Dtype::fp32;
        EXPECT_LT(e.relative_l2, rounded ? 2e-3 : 1e-4) << e.tensor << source.source.text;
      }
    }
  }
  int kept_ = 0, gradients_ = 0;
};

TEST_F(SlowGpuScanGradient, OfRandomSizesEqualsTheExecutor) {
  if (!use(SmTarget::sm_80)) return;
  std::mt19937 random(75);
  for (int round = 0; round < 24; ++round) {
    fuseline::test::ScanCase c = fuseline::test::random_scan(random);
    c.shape.tokens = std::max<std::int64_t>(c.shape.tokens, 2);
    c.state = false;
    check(c, round % 2 == 0);
  }
  EXPECT_GT(gradients_, 5);
}

// Heads of real models, several sequences and groups, pieces that end within a segment.
TEST_F(SlowGpuScanGradient, OfRealWidthsEqualsTheExecutor) {
  if (!use(SmTarget::sm_80)) return;
  for (const Dtype type : {Dtype::bf16, Dtype::fp32})
    for (const ScanShape& s :
         {ScanShape{6, 1, 64, 128, 2, 333, 64}, ScanShape{6, 2, 64, 128, 2, 70, 256},
          ScanShape{6, 3, 24, 40, 1, 65, 16}, ScanShape{4, 2, 8, 256, 1, 50, 19}})
      check({s, false, true, type}, false);
  check({{200, 1, 1, 16, 2, 333, 64}, false, true, Dtype::bf16}, true);
  check({{64, 1, 1, 16, 1, 2100, 64}, false, true, Dtype::bf16}, true);
  check({{16, 2, 4, 20, 2, 90, 32}, false, true, Dtype::bf16}, true);
  EXPECT_EQ(gradients_, 11);
  EXPECT_EQ(kept_, 11);
}

TEST_F(SlowGpuScan, ConvolutionsEqualTheExecutor) {
  if (!use(SmTarget::sm_80)) return;
  std::mt19937 random(73);
  for (int round = 0; round < 24; ++round) {
    const ConvolutionShape s{fuseline::test::pick(random, 1, 4),
                             fuseline::test::pick(random, 1, 40),
                             fuseline::test::pick(random, 2, 6)};
    const std::int64_t cols = fuseline::test::pick(random, 1, 400);
    check(fuseline::test::conv_graph(s, cols, round % 2 == 0,
                                     round % 3 == 0 ? Dtype::fp32 : Dtype::bf16),
          random,
          std::to_string(s.tokens) + " tokens, " + std::to_string(s.taps) + " taps, " +
              std::to_string(cols) + " columns");
  }
}

}  // namespace
}  // namespace fuseline::cuda
