#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using test::find_kernel;
using test::kernel_names;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Policies, EagerLaunches21KernelsForwardAnd23InDecode) {
  EXPECT_EQ(make_plan("eager", test::llama2_7b(), test::forward(1, 2048)).kernels.size(), 21u);
  EXPECT_EQ(make_plan("eager", test::llama2_7b(), test::decode(1, 1, 2048)).kernels.size(), 23u);
  EXPECT_EQ(make_plan("composed", test::llama2_7b(), test::forward(1, 2048)).kernels.size(), 35u);
  EXPECT_EQ(make_plan("eager", test::gpt2_xl(), test::forward(4, 2048)).kernels.size(), 10u);
}

TEST(Policies, EagerUsesStridedKernelsForSlicesOfSeveralRowsOnly) {
  const auto silu = [](const Workload& work) {
    return find_kernel(make_plan("eager", test::llama2_7b(), work), "swiglu_silu")->implementation;
  };
  EXPECT_EQ(silu(test::forward(1, 2048)), Implementation::strided);
  EXPECT_EQ(silu(test::decode(16, 1, 2048)), Implementation::strided);
  EXPECT_EQ(silu(test::decode(1, 1, 2048)), Implementation::vectorized);
}

TEST(Policies, TorchCompileKeepsTheResidualStreamOutOfMemory) {
  // Given h = o + x, read by the norm and by the second residual: both loops compute it.
  const Plan plan = make_plan("torch-compile", test::llama2_7b(), test::forward(1, 2048));
  EXPECT_EQ(plan.homes[static_cast<std::size_t>(plan.graph.find_tensor("h")->index)],
            Home::on_chip);
  EXPECT_EQ(find_kernel(plan, "residual2")->ops.size(), 2u);
  EXPECT_EQ(loads(find_kernel(plan, "residual2")->phases[0]).size(), 3u);  // dn, o, x
}

TEST(Policies, TorchCompileJoinsTheRotationsOnlyOfEqualSize) {
  ModelConfig grouped = test::llama2_7b();
  grouped.Hkv = 8;
  const Workload work = test::forward(1, 64);
  EXPECT_NE(find_kernel(make_plan("torch-compile", test::llama2_7b(), work), "rope_q_rope_k"),
            nullptr);
  EXPECT_NE(find_kernel(make_plan("torch-compile", grouped, work), "rope_k"), nullptr);
}

TEST(Policies, TorchCompileKeepsABiasInItsGemmAndRepeatsTheResidualSum) {
  const Plan plan = make_plan("torch-compile", test::gpt2_xl(), test::forward(1, 64));
  for (const char* gemm : {"qkv", "oproj", "up", "down"})
    EXPECT_EQ(find_kernel(plan, gemm)->ops.size(), 2u) << gemm;
  EXPECT_EQ(loads(find_kernel(plan, "residual2")->phases[0]).size(), 3u);  // dn, o, x
}

TEST(Policies, CodaIsFourGemmsTwoFinishersAndAttention) {
  for (const ModelConfig& config : {test::llama2_7b(), test::gpt2_xl()}) {
    for (const Workload& work : {test::forward(1, 64), test::decode(2, 1, 64)}) {
      const Plan plan = make_plan("coda", config, work);
      const char* up = config.is_all("llama") ? "gate_up" : "up";
      EXPECT_THAT(kernel_names(plan), ElementsAre("finish_norm1", "qkv", "attention", "oproj",
                                                  "finish_norm2", up, "down"));
    }
  }
}

TEST(Policies, CodaStoresNewKeysAndValuesStraightIntoTheCache) {
  const Plan plan = make_plan("coda", test::llama2_7b(), test::decode(1, 1, 64));
  std::vector<std::string> stored;
  for (const Operand& o : stores(find_kernel(plan, "qkv")->phases[0]))
    stored.push_back(plan.graph.tensor(o.tensor).name + ":" + std::to_string(o.cols));
  EXPECT_THAT(stored, ElementsAre("qk_rot:4096", "cache_k:4096", "cache_v:4096"));
}

TEST(Policies, WholeBlockHasCodasProgramsAsPhasesOfOneLaunch) {
  const Plan coda = make_plan("coda", test::llama2_7b(), test::forward(1, 64));
  const Plan block = make_plan("whole-block", test::llama2_7b(), test::forward(1, 64));
  ASSERT_EQ(block.kernels.size(), 1u);
  EXPECT_EQ(block.kernels[0].kind, KernelKind::block);
  ASSERT_EQ(block.kernels[0].phases.size(), coda.kernels.size());
  for (std::size_t i = 0; i < coda.kernels.size(); ++i)
    EXPECT_EQ(print_program(block.graph, block.kernels[0].phases[i]),
              print_program(coda.graph, coda.kernels[i].phases[0]));
}

TEST(Policies, TensorRtRotatesAndAppendsInsideAttention) {
  const Plan plan = make_plan("tensorrt-llm", test::llama2_7b(), test::decode(1, 1, 64));
  EXPECT_EQ(find_kernel(plan, "attention")->ops.size(), 7u);
  EXPECT_FALSE(find_kernel(plan, "attention")->phases[0].prologue.empty());
  EXPECT_EQ(plan.kernels.size(), 7u);
}

TEST(Policies, XlaTakesGeluIntoTheLibraryCallAndStoresTheResidualStream) {
  const Plan plan = make_plan("xla", test::gpt2_xl(), test::forward(1, 64));
  EXPECT_EQ(find_kernel(plan, "up")->ops.size(), 3u);  // product, bias, GELU
  EXPECT_EQ(plan.homes[static_cast<std::size_t>(plan.graph.find_tensor("h")->index)], Home::hbm);
}

TEST(Policies, FlashAttentionDiffersFromUnfusedInAttentionOnly) {
  const Plan flash = make_plan("flash-attention", test::llama2_7b(), test::forward(1, 64));
  const Plan unfused = make_plan("unfused", test::llama2_7b(), test::forward(1, 64));
  EXPECT_EQ(flash.kernels.size() + 2, unfused.kernels.size());
}

// Which ones there are, and in which order, the documentation shows: its `fuseline list policies`
// is compared with what the program prints.
TEST(Policies, HaveAPlaceOfTheirOwnInTheOrderOfTheDocumentation) {
  int before = 0;
  for (const PolicyInfo& info : policies()) {
    EXPECT_GT(info.place, before) << info.name;
    before = info.place;
    EXPECT_FALSE(info.imitates.empty());
    EXPECT_FALSE(info.fuses.empty());
  }
  EXPECT_LT(before, PolicyInfo{}.place) << "a policy of the project says its place";
  EXPECT_GT(before, 0) << "there are policies";
}

TEST(Policies, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    static_cast<void>(make_plan("torch-compil", test::tiny_llama(), test::forward(1, 2)));
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().nearest, "torch-compile");
    EXPECT_THAT(e.problem().allowed, HasSubstr("whole-block"));
  }
}

TEST(Policies, SayWhetherTheyTrain) {
  for (const PolicyInfo& info : policies()) {
    const bool inference = info.name == "tensorrt-llm" || info.name == "whole-block";
    EXPECT_EQ(info.trains, !inference) << info.name;
  }
}

TEST(Policies, InferencePoliciesRefuseTrainWithTheReason) {
  for (const char* policy : {"tensorrt-llm", "whole-block"}) {
    try {
      static_cast<void>(make_plan(policy, test::tiny_llama(), test::train(1, 2)));
      FAIL() << policy;
    } catch (const InputError& e) {
      EXPECT_EQ(e.problem().field, "--phase");
      EXPECT_THAT(e.problem().message, HasSubstr("has no plan for the backward pass: "));
      EXPECT_THAT(e.problem().allowed, HasSubstr("torch-compile, coda"));
      EXPECT_THAT(e.problem().allowed, ::testing::Not(HasSubstr("tensorrt")));
    }
  }
}

TEST(Policies, EagerTrainsWith53Kernels) {
  EXPECT_EQ(make_plan("eager", test::llama2_7b(), test::train(1, 2048)).kernels.size(), 53u);
  EXPECT_EQ(make_plan("eager", test::gpt2_xl(), test::train(1, 2048)).kernels.size(), 33u);
  EXPECT_EQ(make_plan("torch-compile", test::llama2_7b(), test::train(1, 2048)).kernels.size(),
            28u);
}

TEST(Policies, CodaTrainsWith8GemmsAnElementWiseKernelAnd3FinishersBackward) {
  const Plan plan = make_plan("coda", test::llama2_7b(), test::train(1, 2048));
  std::vector<std::string> backward;
  for (const Kernel& k : plan.kernels)
    if (plan.graph.op(k.ops.front()).pass == Pass::backward) backward.push_back(k.name);
  EXPECT_THAT(backward, ElementsAre("d_down", "dw_down", "finish_dot_norm2", "d_gate_up",
                                    "dw_gate_up", "dw_oproj", "d_oproj", "d_dot", "d_attention",
                                    "convert_dq_d_rope_k_d_rope_q", "finish_dot_norm1", "d_qkv",
                                    "finish_column_sums", "dw_qkv"));
  EXPECT_EQ(plan.kernels.size(), 7 + backward.size());
}

// BERT's norms stand behind its blocks, so that the gradient of the last one is a kernel of its
// own, and a bias has that gradient's sums down the columns. One kernel for both had a thread block
// for each 128 rows: 164 us on an H100 for 600 rows.
TEST(Policies, CodaSumsNoColumnsInAKernelOfWholeRows) {
  const Plan plan = make_plan("coda", load_model("bert-large"), test::train(2, 300));
  const auto has = [&](const Kernel& kernel, const auto& is) {
    return std::ranges::any_of(kernel.ops, [&](OpId id) { return is(plan.graph.op(id)); });
  };
  const auto sums = [](const auto& op) { return op.kind == operators::col_stats_partial; };
  const auto rows = [](const auto& op) { return op.kind->op_class == OpClass::norm; };
  EXPECT_TRUE(std::ranges::any_of(plan.kernels, [&](const Kernel& k) { return has(k, sums); }));
  for (const Kernel& kernel : plan.kernels)
    EXPECT_FALSE(has(kernel, sums) && has(kernel, rows)) << kernel.name;
}

TEST(Policies, CodaSavesRotatedQkvAndKeepsTheGradientsOfNormsOnChip) {
  const Plan plan = make_plan("coda", test::llama2_7b(), test::train(1, 2048));
  const auto home = [&](const char* name) {
    return plan.homes[static_cast<std::size_t>(plan.graph.find_tensor(name)->index)];
  };
  for (const char* tensor : {"dact", "dxn1", "dxn2", "dq_rot"})
    EXPECT_EQ(home(tensor), Home::on_chip) << tensor;
  // Of the QKV product itself only V's columns are stored.
  for (const Operand& o : stores(find_kernel(plan, "qkv")->phases[0]))
    if (o.tensor == *plan.graph.find_tensor("qkv")) {
      EXPECT_EQ(o.col_begin, 8192);
    }
  // dW reads the norm's result that the epilogue of the gradient before it computed again.
  const auto& gate_up = std::get<GemmMainloop>(find_kernel(plan, "dw_gate_up")->phases[0].mainloop);
  EXPECT_EQ(plan.graph.tensor(gate_up.b.tensor).name, "re_xn2");
}

TEST(Policies, GroupedQueriesAddTheLibrarysSumsOverHeads) {
  const auto sums = [](std::int64_t kv_heads) {
    ModelConfig config = test::llama2_7b();
    config.Hkv = kv_heads;
    const Plan plan = make_plan("eager", config, test::train(1, 64));
    return find_kernel(plan, "sum_dk") != nullptr && find_kernel(plan, "sum_dv") != nullptr;
  };
  EXPECT_TRUE(sums(8));
  EXPECT_FALSE(sums(32));
}

// Bytes of the distinct operands of every kernel: what the plan asks for at least.
Bytes requested(const Plan& plan) {
  Bytes total;
  for (const Kernel& k : plan.kernels) {
    for (const Program& p : k.phases) {
      total += distinct_bytes(plan.graph, loads(p));
      total += distinct_bytes(plan.graph, stores(p));
    }
  }
  return total;
}

TEST(PoliciesOverRandomBlocks, GiveCheckedPlansWithEachOperatorInOneKernel) {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    const test::RandomBlock b = test::random_block(random);
    SCOPED_TRACE(test::describe(b));
    for (const PolicyInfo& info : policies()) {
      const Plan plan = make_plan(info.name, b.config, b.work);
      EXPECT_THAT(check_plan(plan), IsEmpty()) << info.name;
      EXPECT_EQ(plan.notes.size(), edges(plan.graph).size());
      for (const FusionNote& note : plan.notes) EXPECT_FALSE(note.reason.empty());
    }
  }
}

TEST(PoliciesOverRandomBlocks, GiveCheckedPlansOfTheBackwardPassToo) {
  std::mt19937 random(19);
  for (int i = 0; i < 100; ++i) {
    const test::RandomBlock b = test::random_training_block(random);
    SCOPED_TRACE(test::describe(b));
    for (const std::string& policy : test::training_policies()) {
      const Plan plan = make_plan(policy, b.config, b.work);
      EXPECT_THAT(check_plan(plan), IsEmpty()) << policy;
      EXPECT_EQ(plan.notes.size(), edges(plan.graph).size());
      for (const FusionNote& note : plan.notes) {
        EXPECT_FALSE(note.reason.empty());
        EXPECT_NE(note.reason, "could share a kernel, but ");
      }
    }
  }
}

TEST(PoliciesOverRandomBlocks, FusedAttentionAsksForFewerBytesInTraining) {
  std::mt19937 random(23);
  for (int i = 0; i < 30; ++i) {
    test::RandomBlock b = test::random_training_block(random);
    b.work.seq = test::pick(random, 64, 90);  // scores outweigh the log-sum-exp
    b.config.d = 8;
    SCOPED_TRACE(test::describe(b));
    const Graph block = build_block(b.config, b.work);
    EXPECT_LT(requested(make_plan("flash-attention", block)),
              requested(make_plan("unfused", block)));
    EXPECT_LE(requested(make_plan("torch-compile", block)), requested(make_plan("eager", block)));
    const CompulsoryBytes least = compulsory_bytes(block);
    EXPECT_GE(requested(make_plan("coda", block)), least.read + least.written);
  }
}

TEST(PoliciesOverRandomBlocks, FusingMoreNeverAsksForMoreBytes) {
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) {
    test::RandomBlock b = test::random_block(random);
    // Partial statistics pay off only where a row is wider than they are.
    b.config.D = test::pick(random, 129, 300);
    SCOPED_TRACE(test::describe(b));
    const Graph block = build_block(b.config, b.work);
    const Bytes coda = requested(make_plan("coda", block));
    const Bytes per_operator = requested(make_plan("per-operator", block));
    EXPECT_LE(coda, per_operator);
    EXPECT_LE(per_operator, requested(make_plan("flash-attention", block)));
    EXPECT_LE(requested(make_plan("flash-attention", block)),
              requested(make_plan("unfused", block)));
    const CompulsoryBytes least = compulsory_bytes(block);
    EXPECT_GE(coda, least.read + least.written);
  }
}

TEST(PoliciesOverTheModelsEnds, GiveCheckedPlans) {
  for (const ModelConfig& config : {test::tiny_llama(), test::tiny_gpt()}) {
    for (const PolicyInfo& info : policies()) {
      SCOPED_TRACE(info.name);
      EXPECT_THAT(check_plan(make_plan(info.name, build_entry(config, test::forward(2, 3)))),
                  IsEmpty());
      EXPECT_THAT(check_plan(make_plan(info.name, build_exit(config, test::forward(2, 3)))),
                  IsEmpty());
      const Graph entry = build_entry(config, test::train(2, 3));
      const Graph exit = build_exit(config, test::train(2, 3));
      if (!info.trains) {
        EXPECT_THROW(make_plan(info.name, exit), InputError);
        continue;
      }
      EXPECT_THAT(check_plan(make_plan(info.name, entry)), IsEmpty());
      EXPECT_THAT(check_plan(make_plan(info.name, exit)), IsEmpty());
    }
  }
}

// The loss is in the LM head's epilogue and its finisher; the final norm's gradient behind the
// dgrad GEMM takes its row sums from where logits and their gradient meet.
TEST(PoliciesOverTheModelsEnds, CodaFusesTheLossAndDefersTheFinalNorm) {
  const Plan plan = make_plan("coda", build_exit(test::llama2_7b(), test::train(1, 64)));
  const auto operators = [&](const std::string& kernel) {
    std::vector<std::string> names;
    for (const OpId id : test::find_kernel(plan, kernel)->ops)
      names.push_back(plan.graph.op(id).name);
    return names;
  };
  EXPECT_THAT(operators("lm_head"), ElementsAre("lm_head", "lm_head_scale", "loss_partial"));
  EXPECT_THAT(operators("loss"), ElementsAre("loss"));
  EXPECT_THAT(operators("d_loss"), ElementsAre("d_loss", "dot_final_norm"));
  EXPECT_THAT(operators("d_lm_head"), testing::IsSupersetOf({"d_lm_head", "d_final_norm"}));
}

}  // namespace
}  // namespace fuseline
