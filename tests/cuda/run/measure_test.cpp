// What measuring decides and sums up on the host. The GPU's part: gpu_measure_test.cpp.
#include "cuda/run/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "cuda/run/block_check.h"
#include "cuda/run/block_on_gpu.h"
#include "cuda/run/count_kernels.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/timing.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

DeviceInfo device(const std::string& name, int major, int sms, std::int64_t gigabytes) {
  DeviceInfo info;
  info.name = name;
  info.major = major;
  info.multiprocessors = sms;
  info.memory = Bytes(gigabytes * 1'000'000'000);
  return info;
}

TEST(KnownGpu, IsFoundByNameOrByMemory) {
  EXPECT_EQ(known_gpu(device("NVIDIA H200", 9, 132, 150)).name, "h200");
  EXPECT_EQ(known_gpu(device("NVIDIA H100 80GB HBM3", 9, 132, 85)).name, "h100-sxm");
  EXPECT_EQ(known_gpu(device("NVIDIA A100-SXM4-40GB", 8, 108, 42)).hbm_capacity,
            load_gpu("a100-sxm-40gb").hbm_capacity);
}

TEST(KnownGpu, UnknownOnesAskForADescription) {
  EXPECT_THROW((void)known_gpu(device("NVIDIA H9000", 9, 7, 80)), InputError);
}

// An H200 was asked for and an H100 came: constants fitted with the wrong description would make up
// for the other memory.
TEST(KnownGpu, ADescriptionOfAnotherCardIsTold) {
  const std::vector<Gpu> known = {load_gpu("h100-sxm"), load_gpu("h200"), load_gpu("l40s")};
  const DeviceInfo h100 = device("NVIDIA H100 80GB HBM3", 9, 132, 85);
  EXPECT_EQ(other_card(known[0], h100, known), "");
  const std::string memory = other_card(known[1], h100, known);
  EXPECT_NE(memory.find("--gpu h100-sxm describes it"), std::string::npos) << memory;
  const std::string sms = other_card(known[2], h100, known);
  EXPECT_NE(sms.find("142 SMs"), std::string::npos) << sms;
}

TEST(Shrunk, KeepsWhatFitsAndHalvesTheRest) {
  const ModelConfig model = load_model("llama2-7b");
  const Workload work = test::forward(4, 2048);
  const Workload same = shrunk(model, work, 1e15);
  EXPECT_EQ(same.seq, 2048);
  EXPECT_EQ(same.batch, 4);
  const Workload less = shrunk(model, work, 1e11);
  EXPECT_LT(less.rows(), work.rows());
  EXPECT_LE(flops(build_block(model, less)).as_double(), 1e11);
  const Workload decode = shrunk(model, test::decode(16, 1, 2048), 1);
  EXPECT_EQ(decode.seq, 1);
  EXPECT_EQ(decode.context, 2048);
  EXPECT_EQ(decode.batch, 1);
}

executor::Storage numbers(std::int64_t rows, std::int64_t cols) {
  executor::Storage s(Dtype::bf16, rows, cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto value = static_cast<float>(r * cols + c);
      s.write(r, c, 1, &value);
    }
  }
  return s;
}

std::vector<executor::Storage> one(executor::Storage s) {
  std::vector<executor::Storage> all;
  all.push_back(std::move(s));
  return all;
}

TEST(Fingerprint, SeesOneChangedElement) {
  const auto before = fingerprint(one(numbers(5, 7)), {.threads = 3});
  EXPECT_EQ(before, fingerprint(one(numbers(5, 7)), {}));
  for (std::int64_t r = 0; r < 5; ++r) {
    executor::Storage changed = numbers(5, 7);
    const float value = -1;
    changed.write(r, 6, 1, &value);
    EXPECT_NE(before, fingerprint(one(std::move(changed)), {})) << r;
  }
}

TEST(AllFinite, SeesANaN) {
  EXPECT_TRUE(all_finite(one(numbers(3, 3)), {}));
  executor::Storage s = numbers(3, 3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  s.write(2, 1, 1, &nan);
  EXPECT_FALSE(all_finite(one(std::move(s)), {}));
}

// Columns that no kernel stores may hold anything: keys that went to the cache instead.
TEST(FirstNotFinite, LooksAtWhatIsStored) {
  const Plan plan = make_plan("coda", test::tiny_llama(), test::forward(1, 5));
  const executor::Workers workers;
  const auto inputs = executor::prepare_inputs(
      plan,
      executor::random_storage(build_block(test::tiny_llama(), test::forward(1, 5)), 1, workers), 1,
      workers);
  executor::Memory memory(plan, inputs);
  EXPECT_EQ(first_not_finite(plan, memory, workers), "");
  const TensorId y = *plan.graph.find_tensor("y");
  const float infinity = std::numeric_limits<float>::infinity();
  memory.writable(y).write(4, 0, 1, &infinity);
  EXPECT_EQ(first_not_finite(plan, memory, workers), "y");
}

MeasuredPolicy passing() {
  MeasuredPolicy p;
  p.policy = "coda";
  p.block.block = {.model = "tinyllama", .execution = "coda", .workload = test::forward(1, 128)};
  p.block.time = {Seconds(1e-3), Seconds(0.9e-3), Seconds(1.1e-3)};
  executor::ComparedTensor y;
  y.name = "y";
  y.output = true;
  p.tensors = {y};
  return p;
}

TEST(MeasuredPolicy, FailsForEachReason) {
  EXPECT_TRUE(passing().passed());
  MeasuredPolicy p = passing();
  p.repeats = false;
  EXPECT_FALSE(p.passed());
  p = passing();
  p.not_finite = "y";
  EXPECT_FALSE(p.passed());
  p = passing();
  p.tensors.front().problem = "too far";
  EXPECT_FALSE(p.passed());
}

TEST(AsMeasurements, KeepsWhereNumbersComeFrom) {
  GpuMeasurement m;
  m.device = "NVIDIA H200, 132 SMs, 60 MiB L2";
  m.driver = "580";
  m.policies = {passing()};
  const Measurements out = as_measurements(m, load_gpu("h200"));
  EXPECT_EQ(out.meta.gpu, "h200");
  EXPECT_EQ(out.meta.device, m.device);
  EXPECT_EQ(out.meta.counters, "");  // none were read
  EXPECT_EQ(out.meta.launches, "");
  m.overlap = true;
  EXPECT_EQ(as_measurements(m, load_gpu("h200")).meta.launches, kOverlappingLaunches);
  ASSERT_EQ(out.blocks.size(), 1U);
  EXPECT_TRUE(out.traces.empty());
}

TEST(AsMeasurements, RivalsComeWithTheirFramework) {
  GpuMeasurement m;
  m.policies = {passing()};
  EXPECT_TRUE(as_measurements(m, load_gpu("h200")).meta.notes.empty());
  m.rivals = {passing().block};
  m.rivals.front().block.execution = "torch-compile";
  m.rival_framework = "PyTorch 2.11.0";
  const Measurements out = as_measurements(m, load_gpu("h200"));
  ASSERT_EQ(out.rivals.size(), 1U);
  EXPECT_EQ(out.rivals.front().block.execution, "torch-compile");
  EXPECT_EQ(out.blocks.size(), 1U);
  EXPECT_EQ(out.meta.notes,
            std::vector<std::string>{"rivals.csv: PyTorch 2.11.0, timed in turns with ours"});
}

TEST(AsMeasurements, SaysWhoseAttentionItWas) {
  GpuMeasurement m;
  m.policies = {passing()};
  m.libraries = "cuBLASLt 13.1.0";
  EXPECT_EQ(as_measurements(m, load_gpu("h200")).meta.framework,
            "fuseline; library GEMMs: cuBLASLt 13.1.0");
  m.libraries += ", cuDNN 9.14.0";
  m.library_attention = true;
  EXPECT_EQ(as_measurements(m, load_gpu("h200")).meta.framework,
            "fuseline; libraries, attention too: cuBLASLt 13.1.0, cuDNN 9.14.0");
}

#if FUSELINE_HAS_CUDA

TEST(SpreadOfTimes, IsMedianAndExtremes) {
  const SpreadOfTimes odd = spread_of({Seconds(3), Seconds(1), Seconds(2)});
  EXPECT_DOUBLE_EQ(odd.median.value(), 2);
  EXPECT_DOUBLE_EQ(odd.least.value(), 1);
  EXPECT_DOUBLE_EQ(odd.most.value(), 3);
  EXPECT_DOUBLE_EQ(spread_of({Seconds(4), Seconds(1)}).median.value(), 2.5);
}

TEST(LayersBeyondL2, SmallModelsTakeMore) {
  const Bytes l2(std::int64_t{60} << 20);
  const auto layers = [&](const char* model) {
    return layers_beyond_l2(make_plan("coda", load_model(model), test::forward(1, 128)), l2);
  };
  EXPECT_EQ(layers("llama2-7b"), 1);  // 405 MB of weights
  EXPECT_GT(layers("gpt2-xl"), 1);    // 61 MB
  EXPECT_GT(layers("char-llama"), layers("gpt2-xl"));
}

TEST(MergedStates, CombineWhatEachHas) {
  GpuStateSummary a, b;
  a.samples = 2;
  a.sm_clock_median = a.sm_clock_least = Hertz(1.9e9);
  a.power_mean = Watts(100);
  a.throttling = {"software power cap"};
  b.samples = 1;
  b.sm_clock_median = b.sm_clock_least = Hertz(1.5e9);
  b.power_mean = Watts(300);
  b.throttling = {"software power cap", "thermal"};
  const GpuStateSummary sum = merged({a, b, {}});
  EXPECT_EQ(sum.samples, 3U);
  EXPECT_DOUBLE_EQ(sum.sm_clock_least->value(), 1.5e9);
  EXPECT_DOUBLE_EQ(sum.power_mean->value(), 200);
  EXPECT_EQ(sum.throttling.size(), 2U);
  EXPECT_FALSE(merged({}).sm_clock_median.has_value());
}

#endif

}  // namespace
}  // namespace fuseline::cuda
