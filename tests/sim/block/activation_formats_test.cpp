// Activations in number formats: which operators make codes, what moves, how fast codes are
// multiplied, and what is refused. All shipped blocks: blocks_in_formats_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/formats/least_scale.h"
#include "model/formats/weight_format.h"
#include "model/operators/all_operators.h"
#include "sim/gpu/code_rate.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

StoredWeight rows_in(const std::string& name) { return parse_stored_activation(name, "", ""); }

Workload in_codes(Workload work, const std::string& name) {
  if (name.empty()) return work;
  work.formats.activations = rows_in(name);
  work.formats.weights = parse_stored_weight(weights_for(work.formats.activations), "", "");
  return work;
}

std::vector<const Op*> quantising(const Graph& graph) {
  std::vector<const Op*> found;
  for (const Op& op : graph.ops())
    if (op.kind == operators::quantise_rows || op.kind == operators::quantise_groups)
      found.push_back(&op);
  return found;
}

// Two products of one operand share its codes.
TEST(ActivationFormats, AreMadeOnceForAllProductsOfAnOperand) {
  for (const std::string& name : activation_format_names()) {
    const Graph llama =
        build_block(test::sized_in_groups("llama"), in_codes(test::forward(1, 8), name));
    const std::vector<const Op*> made = quantising(llama);
    ASSERT_EQ(made.size(), 4U) << name;  // of qkv, oproj, gate_up and down
    for (const Op* op : made) {
      EXPECT_EQ(llama.consumers(op->writes[0].tensor).size(), 1U);
      EXPECT_EQ(llama.consumers(op->writes[1].tensor).size(), 1U);
    }
  }
  const auto text = BlockText::parse(
      "fuseline.block/1\nblock two(D)\n  input x[M, D]\n  a = linear(x, w_a[D, D])\n"
      "  b = linear(x, w_b[D, D])\n  y = a + b\n  output y\n",
      "two.block");
  const Graph two =
      build_graph(*text, {{"D", std::int64_t{128}}}, in_codes(test::forward(1, 8), "fp8"));
  ASSERT_EQ(quantising(two).size(), 1U);
  EXPECT_EQ(two.consumers(quantising(two).front()->writes[0].tensor).size(), 2U);
}

// The fusion that makes codes cheap: where the norm already holds the row, and where the product
// before it holds whole groups.
TEST(ActivationFormats, AreMadeInTheKernelThatHoldsTheNumbers) {
  const Gpu gpu = load_gpu("h200");
  const auto kernels = [&](const std::string& policy, const std::string& name) {
    const Graph block = build_block(test::llama2_7b(), in_codes(test::forward(1, 2048), name));
    const Plan plan = make_plan(policy, block, plan_target(gpu));
    std::vector<std::string> shared;
    for (const Kernel& k : plan.kernels)
      for (const OpId id : k.ops)
        if (k.ops.size() > 1 && plan.graph.op(id).name.starts_with("quantise_"))
          shared.push_back(plan.graph.op(id).name);
    return shared;
  };
  EXPECT_TRUE(kernels("unfused", "fp8").empty());
  EXPECT_TRUE(kernels("eager", "fp8").empty());
  EXPECT_GE(kernels("torch-compile", "fp8").size(), 3U);  // behind both norms and SwiGLU
  EXPECT_GE(kernels("coda", "fp8").size(), 2U);
  EXPECT_GE(kernels("coda", "fp8-block").size(), 3U);
}

// Gate and up alternate column by column and their blocks of scales with them, so that a tile of
// 256 columns holds 128 of SwiGLU's: a whole group.
TEST(ActivationFormats, OfGroupsAreMadeBehindSwigluInItsProduct) {
  const auto kernel_of = [](const Plan& plan, const std::string& op) {
    for (const Kernel& k : plan.kernels)
      for (const OpId id : k.ops)
        if (plan.graph.op(id).name == op) return &k;
    return static_cast<const Kernel*>(nullptr);
  };
  for (const auto& [block, product] :
       {std::pair{"llama", "gate_up"}, {"qwen3", "gate_up"}, {"moe", "expert_gate_up"}}) {
    ModelConfig c = test::sized_in_groups(block);
    for (const std::int64_t F : {std::int64_t{384}, std::int64_t{128}}) {
      c.F = F;
      for (const Workload& work : {test::forward(2, 19), test::decode(3, 1, 23)}) {
        const Plan plan = make_plan("coda", build_block(c, in_codes(work, "fp8-block")),
                                    plan_target(executor::executor_gpu()));
        const Kernel* kernel = kernel_of(plan, product);
        ASSERT_NE(kernel, nullptr) << block;
        const bool codes = std::ranges::any_of(kernel->ops, [&](OpId id) {
          return plan.graph.op(id).kind == operators::quantise_groups;
        });
        EXPECT_TRUE(codes) << block << ", F " << F;
        const PlanEstimate predicted = test::expect_proved(plan, block);
        for (const KernelEstimate& k : predicted.kernels) {
          if (k.name == kernel->name) {
            EXPECT_EQ(k.tile.at(1) % 256, 0) << block;
          }
        }
      }
    }
    // Blocks of scales that hold rows of gate and of up cannot part.
    c.F = 192;
    EXPECT_THROW(build_block(c, in_codes(test::forward(2, 19), "fp8-block")), InputError) << block;
  }
}

// Where no tile is wide enough, SwiGLU keeps its codes to itself.
TEST(ActivationFormats, OfGroupsWaitForTilesThatHoldThem) {
  ModelConfig c = test::sized_in_groups("llama");
  Target narrow = plan_target(executor::executor_gpu());
  narrow.shared_bytes_per_block = 64 * 1024;
  const Plan plan =
      make_plan("coda", build_block(c, in_codes(test::forward(2, 19), "fp8-block")), narrow);
  for (const Kernel& k : plan.kernels) {
    bool product = false, codes = false;
    for (const OpId id : k.ops) {
      product |= plan.graph.op(id).name == "gate_up";
      codes |= plan.graph.op(id).name == "quantise_act";
    }
    EXPECT_FALSE(product && codes);
  }
}

// By hand: LLaMA-2-7B's gate and up of 2,048 tokens move a byte for each number, and the scales.
TEST(ActivationFormats, MoveCodesAndScales) {
  const Gpu gpu = load_gpu("h200");
  for (const auto& [name, scales] :
       {std::pair{"fp8", 2048}, {"fp8-block", 2048 * 32}, {"int8", 2048}}) {
    const Graph block = build_block(test::llama2_7b(), in_codes(test::forward(1, 2048), name));
    const auto gemm =
        std::ranges::find_if(block.ops(), [](const Op& op) { return op.name == "gate_up"; });
    ASSERT_NE(gemm, block.ops().end());
    EXPECT_EQ(block.bytes(gemm->reads.front()), Bytes(2048 * 4096)) << name;
    EXPECT_EQ(block.bytes(gemm->reads.back()), Bytes(scales * 4)) << name;
  }
}

// Products bound by tensor cores take about half the time.
TEST(ActivationFormats, AreMultipliedAtTheRateOfCodes) {
  const Gpu gpu = load_gpu("h200");
  const auto products = [&](const std::string& name) {
    const Graph block = build_block(test::llama2_7b(), in_codes(test::forward(4, 2048), name));
    double time = 0;
    for (const KernelEstimate& k :
         simulate(make_plan("unfused", block, plan_target(gpu)), gpu, Fidelity::hierarchy).kernels)
      if (std::ranges::find(k.operators, "gate_up") != k.operators.end()) time += k.time.value();
    return time;
  };
  const double plain = products("");
  for (const char* name : {"fp8", "fp8-block"}) {
    EXPECT_LT(products(name), 0.65 * plain) << name;
    EXPECT_GT(products(name), 0.45 * plain) << name;
  }
  EXPECT_LT(products("int8"), plain);  // the library's kernels reach half of the quoted rate
  EXPECT_LE(products("fp8"), products("fp8-block"));  // sums are rescaled
}

TEST(ActivationFormats, LowerTheLimitOfProductsAlone) {
  const Gpu gpu = load_gpu("h200");
  const auto limits = [&](const std::string& name) {
    return limits_of(build_block(test::llama2_7b(), in_codes(test::forward(8, 2048), name)), gpu);
  };
  const double plain = limits("").time.value();
  EXPECT_LT(limits("fp8").time.value(), plain);
  EXPECT_GT(limits("fp8").time.value(), plain / 2);  // attention multiplies numbers
}

// No rate is made up: the GPU's file has it, or the prediction is refused with both names.
TEST(ActivationFormats, AreRefusedOfAGpuThatGivesNoRate) {
  const auto refusal = [](const std::string& name, const Gpu& gpu) -> std::string {
    const Graph block = build_block(test::tiny_llama(), in_codes(test::forward(1, 8), name));
    try {
      static_cast<void>(simulate(make_plan("unfused", block), gpu, Fidelity::hierarchy));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("fp8", load_gpu("a100")), HasSubstr("tensor_fp8_dense"));
  EXPECT_THAT(refusal("fp8", load_gpu("rtx3090")), HasSubstr("rtx3090"));
  EXPECT_EQ(refusal("int8", load_gpu("a100")), "");
  EXPECT_EQ(refusal("fp8", load_gpu("h100")), "");
  Gpu silent = load_gpu("h100");
  silent.tensor_int8 = FlopsPerSecond(0);
  EXPECT_THAT(refusal("int8", silent), HasSubstr("tensor_int8_dense"));
}

TEST(ActivationFormats, AreMultipliedByWeightsOfTheirOwnKind) {
  const auto refusal = [](Workload work) -> std::string {
    try {
      check_workload(work, test::tiny_llama());
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  Workload work = test::forward(1, 8);
  work.formats.activations = rows_in("fp8");
  EXPECT_THAT(refusal(work),
              HasSubstr("activations = 'fp8': is multiplied by weights in fp8, not in bf16"));
  work.formats.weights = parse_stored_weight("fp8-block", "", "");
  EXPECT_THAT(refusal(work), HasSubstr("not in fp8-block"));
  work.formats.weights = parse_stored_weight("int8:32", "", "");
  work.formats.activations = rows_in("int8");
  EXPECT_THAT(refusal(work), HasSubstr("not in int8:32"));
  EXPECT_EQ(refusal(in_codes(test::forward(1, 8), "fp8")), "");
  Workload train = in_codes(test::forward(1, 8), "fp8");
  train.phase = Phase::train;
  EXPECT_THAT(refusal(train), HasSubstr("weights in few bits are not trained"));
}

TEST(ActivationFormats, InGroupsNeedRowsOfWholeGroups) {
  try {
    static_cast<void>(
        build_block(test::sized("llama", false), in_codes(test::forward(1, 8), "fp8-block")));
    ADD_FAILURE() << "rows of 24 columns were taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows of 24 columns are no whole groups of 128"));
  }
}

// Rows in fp32, so that only a number next to the middle between two codes may become another one:
// the worth of a code is off by half a step of its own row or group. Rows of zeros stay zeros.
TEST(ActivationFormats, GiveEachRowOrGroupAScale) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    const std::string name = activation_format_names()[static_cast<std::size_t>(round % 3)];
    const StoredWeight format = rows_in(name);
    const bool groups = format.scaled_within_rows();
    const std::int64_t rows = test::pick(random, 1, 150);
    const std::int64_t cols = groups ? 128 * test::pick(random, 1, 5) : test::pick(random, 1, 700);
    test::GraphByHand g;
    const Operand x = g.tensor("x", Role::input, rows, cols);
    const Operand codes = g.tensor("codes", Role::output, rows, cols);
    const Operand scale = g.tensor("scale", Role::output, rows, groups ? cols / 128 : 1);
    g.graph.tensor(x.tensor).dtype = Dtype::fp32;
    g.graph.tensor(codes.tensor).dtype = format.element();
    g.graph.tensor(scale.tensor).dtype = Dtype::fp32;
    g.op("quantise", groups ? operators::quantise_groups : operators::quantise_rows, {x},
         {codes, scale}, RowCodes{format});
    const Plan plan = make_plan("coda", g.graph);
    ASSERT_EQ(check_plan(plan), std::vector<std::string>{});
    executor::Inputs given = executor::random_storage(g.graph, 5, {}, {.outliers = 30});
    const std::vector<double> values = executor::to_doubles(*given.at("x"));
    const executor::Execution run = executor::execute(plan, given, executor::executor_gpu(), {});
    executor::expect_predicted_bytes(plan, run, name);
    const std::vector<double> code = executor::to_doubles(run.memory->at(codes.tensor));
    const std::vector<double> scales = executor::to_doubles(run.memory->at(scale.tensor));
    const std::int64_t width = groups ? 128 : cols;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t first = 0; first < cols; first += width) {
        const double s = scales[static_cast<std::size_t>(r * (cols / width) + first / width)];
        double most = 0;
        for (std::int64_t c = first; c < first + width; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          most = std::max(most, std::fabs(values[at]));
          // Codes of whole numbers are a step apart; those of e4m3 by their own size.
          const double step =
              name == "int8" ? s : std::max(s * 0x1p-9, std::fabs(values[at]) * 0x1p-3);
          EXPECT_LE(std::fabs(code[at] * s - values[at]), step / 2 * (1 + 1e-5)) << r << ' ' << c;
        }
        EXPECT_NEAR(s, std::max(most / format.format->largest, kLeastScale), s * 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
