// Scans and convolutions on a real GPU, against the executor, over odd shapes. Skipped, with the
// reason, where there is no GPU.
#include <gtest/gtest.h>

#include <random>

#include "cuda/run/block_on_gpu.h"
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
