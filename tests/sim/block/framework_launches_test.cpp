// Operators that a framework computes in launches of its own, beside the traces of graph replays on
// an H200 (scenarios/measurements/h200-open/traces.csv).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/csv.h"
#include "base/data_dir.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

Plan plan_of(const std::string& model, const std::string& policy, const Workload& workload) {
  return make_plan(policy, load_model(model), workload, plan_target(load_gpu("h200")));
}

const Kernel& kernel_of(const Plan& plan, const std::string& name) {
  const auto found =
      std::ranges::find_if(plan.kernels, [&](const Kernel& k) { return k.name == name; });
  EXPECT_NE(found, plan.kernels.end()) << name;
  return *found;
}

Workload forward(std::int64_t batch, std::int64_t seq) {
  Workload w;
  w.batch = batch;
  w.seq = seq;
  return w;
}

// The launches that stand for one kernel of the plan: its first and those that follow.
double us_of(const PlanEstimate& estimate, const std::string& kernel) {
  double sum = 0;
  for (const KernelEstimate& k : estimate.kernels) {
    if (k.name == kernel || k.name.starts_with(kernel + "_")) sum += to_us(k.time);
  }
  return sum;
}

// Of Mamba-2 2.7B in eager: launches 3 to 5 of the trace make the convolution, 11 to 55 the scan.
TEST(FrameworkLaunches, OfAScanTakeWhatWasTraced) {
  const Gpu gpu = load_gpu("h200");
  const PlanEstimate e =
      simulate(plan_of("mamba2-2.7b", "eager", forward(1, 2048)), gpu, Fidelity::hierarchy);
  EXPECT_NEAR(us_of(e, "conv"), 197.0, 0.10 * 197.0);
  EXPECT_NEAR(us_of(e, "scan"), 1095.4, 0.10 * 1095.4);
  // Memory operations left out, the trace has 57 kernels.
  EXPECT_EQ(std::ssize(e.kernels), 57);
}

TEST(FrameworkLaunches, StandInThePlaceOfTheScan) {
  const Plan plan = plan_of("mamba2-2.7b", "eager", forward(1, 2048));
  const Kernel& scan = kernel_of(plan, "scan");
  EXPECT_TRUE(scan.in_pieces);
  EXPECT_EQ(scan.beside.size(), 43U);
  EXPECT_EQ(scan.beside.front().name, "scale");
}

// One token, rates for every column of a state, a compiler of loops: the library's kernel.
TEST(FrameworkLaunches, LeaveOtherScansToTheLibrary) {
  Workload decode = forward(1, 1);
  decode.phase = Phase::decode;
  decode.context = 333;
  EXPECT_FALSE(kernel_of(plan_of("mamba2-2.7b", "eager", decode), "scan").in_pieces);
  for (const Kernel& k : plan_of("mamba-2.8b", "eager", forward(1, 2048)).kernels)
    EXPECT_TRUE(k.kind != KernelKind::scan || !k.in_pieces) << k.name;
  for (const std::string policy : {"torch-compile", "coda", "per-operator"})
    for (const Kernel& k : plan_of("mamba2-2.7b", policy, forward(1, 2048)).kernels)
      EXPECT_FALSE(k.in_pieces) << policy << " " << k.name;
}

TEST(FrameworkLaunches, PadTheLastChunk) {
  const Gpu gpu = load_gpu("h200");
  const auto us = [&](std::int64_t tokens) {
    return us_of(
        simulate(plan_of("mamba2-2.7b", "eager", forward(1, tokens)), gpu, Fidelity::hierarchy),
        "scan");
  };
  EXPECT_LT(us(1792), us(1793));
  EXPECT_NEAR(us(1793), us(2048), 0.03 * us(2048));
}

// Several new tokens go on from a state, which the launches do not take.
TEST(FrameworkLaunches, TokensBehindAStateTakeTheLibrarysScan) {
  Workload decode = forward(2, 5);
  decode.phase = Phase::decode;
  decode.context = 19;
  for (const char* policy : {"eager", "composed"}) {
    for (const Kernel& k : plan_of("mamba2-2.7b", policy, decode).kernels)
      EXPECT_FALSE(k.in_pieces) << policy << " " << k.name;
  }
}

// Its bias is added by the same launch, which stores what is read next.
TEST(FrameworkLaunches, OfAConvolutionStoreTheSumWithItsBias) {
  const Plan plan = plan_of("mamba2-2.7b", "eager", forward(1, 2048));
  const Kernel& conv = kernel_of(plan, "conv");
  const Operand& stored = std::get<Operand>(conv.beside.back().moved.back().of);
  EXPECT_TRUE(conv.beside.back().moved.back().store);
  EXPECT_EQ(stored.tensor, plan.graph.op(conv.ops.back()).writes[0].tensor);
  EXPECT_EQ(conv.ops.size(), 2U);
}

// Numbers of 4 bytes are twice as many bytes between the launches too.
TEST(FrameworkLaunches, PassOnNumbersOfTheWorkloadsType) {
  const auto bytes = [&](Dtype dtype) {
    Workload w = forward(1, 2048);
    w.dtype = dtype;
    return simulate(plan_of("mamba2-2.7b", "eager", w), load_gpu("h200"), Fidelity::hierarchy)
        .l2.as_double();
  };
  EXPECT_GT(bytes(Dtype::fp32), 1.5 * bytes(Dtype::bf16));
  EXPECT_EQ(bytes(Dtype::fp16), bytes(Dtype::bf16));
}

// The convolution leaves its result column by column; what is added to it row by row is not.
TEST(FrameworkLaunches, ASumOfTwoOrdersIsDear) {
  const Plan plan = plan_of("mamba2-2.7b", "eager", forward(1, 2048));
  EXPECT_EQ(kernel_of(plan, "skip_add").implementation, Implementation::transposing);
  EXPECT_NE(kernel_of(plan, "gate").implementation, Implementation::transposing);
  EXPECT_NE(kernel_of(plan, "residual").implementation, Implementation::transposing);
}

TEST(FrameworkLaunches, OfRoutingTakeWhatWasTraced) {
  const Gpu gpu = load_gpu("h200");
  Workload decode = forward(1, 1);
  decode.phase = Phase::decode;
  decode.context = 2048;
  const PlanEstimate e =
      simulate(plan_of("mixtral-8x7b", "eager", decode), gpu, Fidelity::hierarchy);
  // sbtopk 4.3, bitonicSortKV 4.0, a conversion and a softmax; radixSortKV 6.5, one_hot to cumsum.
  EXPECT_NEAR(us_of(e, "choose"), 10.6, 0.2 * 10.6);
  EXPECT_NEAR(us_of(e, "sort"), 20.2, 0.35 * 20.2);
}

// What autograd launches: rows are added to tokens with atomics, gates get the sum of products that
// it stored first, and each of the grouped products has its own preparation.
TEST(FrameworkLaunches, OfExpertsInTrainingAreThoseOfAutograd) {
  Workload train = forward(1, 256);
  train.phase = Phase::train;
  const Plan eager = plan_of("mixtral-8x7b", "eager", train);
  const auto implementation = [](const Plan& plan, const std::string& name) {
    return kernel_of(plan, name).implementation;
  };
  EXPECT_EQ(implementation(eager, "d_permute"), Implementation::scatter_add);
  EXPECT_EQ(implementation(eager, "d_sum"), Implementation::vectorized);
  const Kernel& factor = kernel_of(eager, "dweigh_factor");
  EXPECT_TRUE(factor.in_pieces);
  EXPECT_EQ(factor.beside.size(), 2U);
  EXPECT_EQ(kernel_of(eager, "d_choose").beside.size(), 3U);
  for (const char* product : {"dw_expert_down", "d_expert_down", "dw_expert_gate_up"}) {
    EXPECT_EQ(implementation(eager, product), Implementation::library_gemm) << product;
    EXPECT_EQ(kernel_of(eager, product).beside.size(), 1U) << product;
  }
  // A compiler makes one loop of the products and their sum; by hand, rows are added in order.
  const Plan compiled = plan_of("mixtral-8x7b", "torch-compile", train);
  EXPECT_TRUE(std::ranges::none_of(compiled.kernels, [](const Kernel& k) {
    return k.in_pieces && k.name.find("factor") != std::string::npos;
  }));
  EXPECT_EQ(implementation(compiled, "d_permute"), Implementation::scatter_add);
  const Plan ours = plan_of("mixtral-8x7b", "coda", train);
  EXPECT_EQ(implementation(plan_of("mixtral-8x7b", "per-operator", train), "d_permute"),
            Implementation::vectorized);
  EXPECT_EQ(implementation(ours, "dw_expert_down"), Implementation::epilogue_gemm);
}

// ---- how many launches ----

// Kernels of one graph replay, memory operations left out, and those of them that finish a call of
// a library: sums of products whose K was split, and of attention whose keys were.
struct Traced {
  std::int64_t kernels = 0, finish_a_call = 0;
};
using TracedBlock =
    std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;

std::map<TracedBlock, Traced> traced_blocks() {
  const CsvTable table((data_dir() / "measurements/h200-open/traces.csv").string());
  std::map<TracedBlock, Traced> blocks;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string& kernel = table.text(i, "kernel");
    if (kernel.starts_with("Mem")) continue;
    const std::string& model = table.text(i, "model");
    Traced& t = blocks[{model.substr(0, model.find(' ')), table.text(i, "execution"),
                        table.text(i, "phase"), table.whole(i, "batch"), table.whole(i, "seq"),
                        table.whole(i, "context")}];
    ++t.kernels;
    if (kernel.find("splitKreduce") != std::string::npos ||
        kernel.find("lean_reduction") != std::string::npos)
      ++t.finish_a_call;
  }
  return blocks;
}

// The plan has a kernel for each call of a library, and the simulator says which calls take two
// launches. Where a library split a product that is not predicted to be split, the trace has more.
// Mamba-2's chunks of two sequences take eight copies that are not in the description of its scan.
TEST(FrameworkLaunches, AreAsManyAsTraced) {
  const Gpu gpu = load_gpu("h200");
  const std::map<TracedBlock, Traced> blocks = traced_blocks();
  ASSERT_EQ(blocks.size(), 65U);
  int within = 0;
  std::vector<std::string> others;
  for (const auto& [block, traced] : blocks) {
    const auto& [model, execution, phase, batch, seq, context] = block;
    Workload work = forward(batch, seq);
    if (phase == "decode") {
      work.phase = Phase::decode;
      work.context = context;
    }
    const std::int64_t launches =
        simulate(plan_of(model, execution, work), gpu, Fidelity::hierarchy).launches;
    const auto share = static_cast<double>(launches) / static_cast<double>(traced.kernels) - 1;
    if (std::abs(share) <= 0.10)
      ++within;
    else if (launches > traced.kernels || launches < traced.kernels - traced.finish_a_call)
      others.push_back(fmt::format("{} {} {} {}x{}: {} for {}", model, execution, phase, batch, seq,
                                   launches, traced.kernels));
  }
  EXPECT_GE(within, 59);
  EXPECT_THAT(others, testing::ElementsAre("mamba2-2.7b eager forward 2x1024: 57 for 65"));
}

}  // namespace
}  // namespace fuseline
