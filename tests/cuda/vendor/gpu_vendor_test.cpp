// The vendor's library on a real GPU, against the executor. Skipped, with the reason, where there
// is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <set>

#include "base/error.h"
#include "cuda/vendor/cublaslt_gemm.h"
#include "cuda/vendor/cudnn_attention.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

using executor::Storage;

// ‖got - want‖ / ‖want‖ over the operand's columns; infinite where got is not finite.
double relative_l2(const Storage& got, const Storage& want, const Operand& part) {
  double difference = 0;
  double size = 0;
  std::vector<float> a(static_cast<std::size_t>(part.cols));
  std::vector<float> b(a.size());
  for (std::int64_t r = 0; r < want.rows(); ++r) {
    got.read(r, part.col_begin, part.cols, a.data());
    want.read(r, part.col_begin, part.cols, b.data());
    for (std::size_t c = 0; c < a.size(); ++c) {
      if (!std::isfinite(a[c])) return INFINITY;
      difference += std::pow(static_cast<double>(a[c]) - static_cast<double>(b[c]), 2);
      size += std::pow(static_cast<double>(b[c]), 2);
    }
  }
  return std::sqrt(difference / size);
}

class SlowGpuVendor : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.emplace();
      store_.emplace(*device_, CubinCache::standard());
      library_.emplace(*device_);
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void run(Launches& launches) {
    Stream stream = device_->stream();
    for (const auto& launch : launches) launch->launch(stream);
    stream.synchronize("running the library's product");
  }

  // How many programs of the plan ran.
  int check(const std::string& policy, const ModelConfig& config, const Workload& work) {
    SCOPED_TRACE(policy + " " + config.name);
    const Graph block = build_block(config, work);
    const Plan plan = make_plan(policy, block);
    const executor::Workers workers;
    const auto inputs =
        executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
    const auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
    GpuTensors tensors(*device_, plan);
    const LaunchContext context{*device_, *store_, plan, tensors};
    int ran = 0;
    for (const Kernel& kernel : plan.kernels)
      for (const Program& program : kernel.phases)
        if (supports(plan.graph, program))
          ran += check(context, tensors, program, *done.memory) ? 1 : 0;
    return ran;
  }

  // False: the library has no algorithm.
  bool check(const LaunchContext& context, GpuTensors& tensors, const Program& program,
             const executor::Memory& memory) {
    SCOPED_TRACE(program.name);
    std::set<TensorId> stored;
    for (const Operand& o : stores(program))
      if (stored.insert(o.tensor).second) tensors.poison(o.tensor);
    for (const Operand& o : loads(program))
      if (!stored.contains(o.tensor)) tensors.upload(o.tensor, memory.at(o.tensor));
    Launches launches = prepare_library_gemm(context, *library_, program);
    if (launches.empty()) return false;
    // Trying the algorithms left the results alone.
    for (const TensorId id : stored) {
      float first = 0;
      tensors.download(id).read(0, 0, 1, &first);
      EXPECT_TRUE(std::isnan(first)) << "preparing wrote " << context.plan.graph.tensor(id).name;
    }
    run(launches);
    for (const Operand& o : stores(program)) {
      const std::string& name = context.plan.graph.tensor(o.tensor).name;
      const double error = relative_l2(tensors.download(o.tensor), memory.at(o.tensor), o);
      // Both round once to bf16 from fp32 sums in different orders: where a sum lies next to a
      // rounding boundary they differ by 2⁻⁸ of it, and few do.
      EXPECT_LT(error, 2e-3) << name;
      std::printf("%-14s %-18s %-14s %.2e  %s\n", context.plan.policy.c_str(), program.name.c_str(),
                  name.c_str(), error, launches.front()->code().c_str());
    }
    return true;
  }

  std::optional<Device> device_;
  std::optional<KernelStore> store_;
  std::optional<CublasLt> library_;
};

// Heads of 32: grouped queries, products in batches of 2 sequences.
ModelConfig vendor_llama() {
  ModelConfig c = test::tiny_llama();
  c.D = 192;
  c.F = 272;
  c.H = 6;
  c.Hkv = 2;
  c.d = 32;
  return c;
}

// Rows and heads that are no multiples of 64, and biases.
ModelConfig small_gpt() {
  ModelConfig c = test::tiny_gpt();
  c.D = 200;
  c.F = 328;
  c.H = c.Hkv = 5;
  c.d = 40;
  return c;
}

TEST_F(SlowGpuVendor, ForwardEqualsTheExecutor) {
  EXPECT_EQ(check("unfused", vendor_llama(), test::forward(2, 75)), 6);
  EXPECT_EQ(check("unfused", small_gpt(), test::forward(1, 141)), 6);
  EXPECT_EQ(check("tensorrt-llm", small_gpt(), test::forward(2, 75)), 4);
  EXPECT_EQ(check("xla", small_gpt(), test::forward(1, 141)), 4);
}

TEST_F(SlowGpuVendor, DecodeEqualsTheExecutor) {
  EXPECT_EQ(check("unfused", vendor_llama(), test::decode(3, 1, 60)), 6);
  EXPECT_EQ(check("tensorrt-llm", small_gpt(), test::decode(3, 1, 60)), 4);
}

TEST_F(SlowGpuVendor, TrainEqualsTheExecutor) {
  // All four layouts; heads that share a key leave dK and dV to us.
  EXPECT_EQ(check("unfused", vendor_llama(), test::train(2, 75)), 6 + 8 + 2);
  EXPECT_EQ(check("unfused", small_gpt(), test::train(1, 141)), 6 + 8 + 4);
  EXPECT_EQ(check("xla", small_gpt(), test::train(2, 75)), 4 + 8);
}

// GELU alone: a = 0, so that the result is GELU of the bias, which runs from -6 to 6.
TEST_F(SlowGpuVendor, GeluIsTheTanhForm) {
  ModelConfig config = small_gpt();
  config.F = 4096;
  const Plan plan = make_plan("tensorrt-llm", build_block(config, test::forward(1, 16)));
  const Program& up = test::find_kernel(plan, "up")->phases.front();
  const VendorGemm form = vendor_gemm(plan.graph, up).value();
  const auto& gemm = std::get<GemmMainloop>(up.mainloop);
  const auto zeros = [&](const Operand& o) {
    const Tensor& t = plan.graph.tensor(o.tensor);
    return Storage(t.dtype, t.rows, t.cols);
  };
  GpuTensors tensors(*device_, plan);
  tensors.upload(gemm.a.tensor, zeros(gemm.a));
  tensors.upload(gemm.b.tensor, zeros(gemm.b));
  Storage bias = zeros(*form.bias);
  std::vector<float> x(4096);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = -6.0F + 12.0F * static_cast<float>(i) / static_cast<float>(x.size());
  bias.write(0, 0, std::ssize(x), x.data());
  bias.read(0, 0, std::ssize(x), x.data());
  tensors.upload(form.bias->tensor, bias);

  const LaunchContext context{*device_, *store_, plan, tensors};
  Launches launches = prepare_library_gemm(context, *library_, up);
  ASSERT_FALSE(launches.empty());
  run(launches);
  std::vector<float> y(x.size());
  tensors.download(form.out.tensor).read(3, 0, std::ssize(y), y.data());
  int nearer_tanh = 0;
  int nearer_erf = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]);
    const double got = static_cast<double>(y[i]);
    const double tanh_form =
        0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
    const double erf_form = 0.5 * v * (1 + std::erf(v / std::numbers::sqrt2));
    // Half a step of bf16, and the hardware's tanh, which is good to 2⁻¹¹ of its largest value.
    EXPECT_NEAR(got, tanh_form, std::abs(tanh_form) * 0x1p-8 + std::abs(v) * 0x1p-11) << v;
    // Only where bf16 tells the forms apart.
    if (std::abs(tanh_form - erf_form) < std::abs(tanh_form) * 0x1p-6) continue;
    (std::abs(got - tanh_form) < std::abs(got - erf_form) ? nearer_tanh : nearer_erf) += 1;
  }
  std::printf("nearer the tanh form: %d, nearer the erf form: %d\n", nearer_tanh, nearer_erf);
  EXPECT_GT(nearer_tanh, 100);
  EXPECT_GT(nearer_tanh, 9 * nearer_erf);
}

// A gradient that is added to what is there.
TEST_F(SlowGpuVendor, AccumulatesIntoTheResult) {
  const Graph block = build_block(vendor_llama(), test::train(1, 75));
  const Plan plan = make_plan("per-operator", block);
  Program dw = test::find_kernel(plan, "dw_oproj")->phases.front();
  StoreTile store = *dw.body.back().as<StoreTile>();
  const executor::Workers workers;
  const auto inputs =
      executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
  const auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
  GpuTensors tensors(*device_, plan);
  for (const Operand& o : loads(dw)) tensors.upload(o.tensor, done.memory->at(o.tensor));
  const LaunchContext context{*device_, *store_, plan, tensors};
  Launches plain = prepare_library_gemm(context, *library_, dw);
  run(plain);
  store.accumulate = true;
  dw.body.back() = store;
  Launches adds = prepare_library_gemm(context, *library_, dw);
  run(adds);

  const Storage& once = done.memory->at(store.to.tensor);
  Storage twice(once.type(), once.rows(), once.cols());
  std::vector<float> row(static_cast<std::size_t>(once.cols()));
  for (std::int64_t r = 0; r < once.rows(); ++r) {
    once.read(r, 0, once.cols(), row.data());
    for (float& v : row) v *= 2;
    twice.write(r, 0, once.cols(), row.data());
  }
  // Rounded twice, and the second time with the first's error in it.
  EXPECT_LT(relative_l2(tensors.download(store.to.tensor), twice, store.to), 4e-3);
}

TEST_F(SlowGpuVendor, TheSameProblemGetsTheSameAlgorithm) {
  const Plan plan = make_plan("eager", build_block(vendor_llama(), test::forward(1, 75)));
  GpuTensors tensors(*device_, plan);
  const LaunchContext context{*device_, *store_, plan, tensors};
  const Program& qkv = test::find_kernel(plan, "qkv")->phases.front();
  Launches first = prepare_library_gemm(context, *library_, qkv);
  Launches second = prepare_library_gemm(context, *library_, qkv);
  EXPECT_EQ(first.at(0)->code(), second.at(0)->code());
}

TEST_F(SlowGpuVendor, LaunchesCanBeRecordedAsAGraph) {
  const Graph block = build_block(vendor_llama(), test::forward(2, 75));
  const Plan plan = make_plan("unfused", block);
  const executor::Workers workers;
  const auto inputs =
      executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
  const auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
  GpuTensors tensors(*device_, plan);
  const Program& scores = test::find_kernel(plan, "scores")->phases.front();
  for (const Operand& o : loads(scores)) tensors.upload(o.tensor, done.memory->at(o.tensor));
  const Operand out = stores(scores).front();
  tensors.poison(out.tensor);
  const LaunchContext context{*device_, *store_, plan, tensors};
  Launches launches = prepare_library_gemm(context, *library_, scores);
  Stream stream = device_->stream();
  stream.begin_capture();
  for (const auto& launch : launches) launch->launch(stream);
  const LaunchGraph graph = stream.end_capture();
  stream.launch(graph);
  stream.synchronize("running a graph of products");
  EXPECT_LT(relative_l2(tensors.download(out.tensor), done.memory->at(out.tensor), out), 2e-3);
}

class SlowGpuVendorAttention : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.emplace();
      store_.emplace(*device_, CubinCache::standard());
      library_.emplace(*device_);
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void check(const std::string& policy, const ModelConfig& config, Workload work,
             Dtype type = Dtype::bf16) {
    SCOPED_TRACE(policy + " " + config.name);
    work.dtype = type;
    const Graph block = build_block(config, work);
    const Plan plan = make_plan(policy, block);
    const Program& attention = test::find_kernel(plan, "attention")->phases.front();
    const executor::Workers workers;
    const auto inputs =
        executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
    const auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
    GpuTensors tensors(*device_, plan);
    for (const Operand& o : loads(attention)) tensors.upload(o.tensor, done.memory->at(o.tensor));
    for (const Operand& o : stores(attention)) tensors.poison(o.tensor);
    const LaunchContext context{*device_, *store_, plan, tensors};
    Launches launches = prepare_library_attention(context, *library_, attention);
    ASSERT_FALSE(launches.empty()) << "the library has no kernel";
    Stream stream = device_->stream();
    for (const auto& launch : launches) launch->launch(stream);
    stream.synchronize("running the library's attention");
    for (const Operand& o : stores(attention)) {
      const Tensor& tensor = plan.graph.tensor(o.tensor);
      const double error = relative_l2(tensors.download(o.tensor), done.memory->at(o.tensor), o);
      // The library rounds probabilities to the operands' type before it multiplies by V: 2⁻⁹ of
      // each in bf16, of which sums keep less, and then the result. Log-sum-exp stays in fp32.
      EXPECT_LT(error, tensor.dtype == Dtype::fp32 ? 1e-4 : 0x1p-8) << tensor.name;
      std::printf("%-14s %-14s %-14s %.2e\n", policy.c_str(), config.name.c_str(),
                  tensor.name.c_str(), error);
    }
  }

  std::optional<Device> device_;
  std::optional<KernelStore> store_;
  std::optional<Cudnn> library_;
};

// Grouped queries, heads of 64.
ModelConfig wide_heads(std::int64_t width) {
  ModelConfig c = vendor_llama();
  c.d = width;
  return c;
}

TEST_F(SlowGpuVendorAttention, ForwardEqualsTheExecutor) {
  check("eager", wide_heads(64), test::forward(2, 75));
  check("eager", wide_heads(128), test::forward(1, 300));
  check("eager", small_gpt(), test::forward(2, 141));
}

TEST_F(SlowGpuVendorAttention, HalfPrecisionEqualsTheExecutor) {
  check("eager", wide_heads(64), test::forward(2, 75), Dtype::fp16);
}

TEST_F(SlowGpuVendorAttention, DecodeSeesTheWholeCache) {
  check("eager", wide_heads(64), test::decode(3, 1, 60));
}

TEST_F(SlowGpuVendorAttention, TrainingStoresTheLogSumExp) {
  check("eager", wide_heads(64), test::train(2, 75));
}

}  // namespace
}  // namespace fuseline::cuda
