#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Graph block() { return build_block(test::tiny_llama(), test::forward(2, 5)); }

std::string refusal(const std::vector<std::string>& rewrites,
                    const std::vector<OnChipEdge>& edges) {
  try {
    static_cast<void>(make_custom_plan(block(), rewrites, edges));
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(CustomPlan, WithoutChoicesFusesAttentionOnly) {
  const Plan plan = make_custom_plan(block(), {}, {});
  EXPECT_THAT(check_plan(plan), IsEmpty());
  EXPECT_EQ(plan.kernels.size(), block().ops().size() - 2);
}

TEST(CustomPlan, KeepsTheChosenEdgeOnChip) {
  const Plan plan = make_custom_plan(block(), {"interleave_gate_up"}, {{"gate_up", "swiglu"}});
  EXPECT_THAT(check_plan(plan), IsEmpty());
  EXPECT_EQ(plan.homes[static_cast<std::size_t>(plan.graph.find_tensor("gu")->index)],
            Home::on_chip);
}

TEST(CustomPlan, CanRebuildCoda) {
  const Plan plan = make_custom_plan(
      block(),
      {"merge_rope", "split_norm", "rotate_statistics", "interleave_heads", "interleave_gate_up"},
      {{"qkv", "qkv_scale"},
       {"qkv_scale", "rope_qk"},
       {"oproj", "residual1"},
       {"residual1", "stats_norm2"},
       {"gate_up", "gate_up_scale"},
       {"gate_up_scale", "swiglu"},
       {"down", "residual2"},
       {"residual2", "stats_next"}});
  EXPECT_EQ(test::kernel_names(plan),
            test::kernel_names(make_plan("coda", test::tiny_llama(), test::forward(2, 5))));
}

TEST(CustomPlan, RefusesIllegalChoicesWithTheReason) {
  EXPECT_THAT(refusal({}, {{"gate_up", "swiglu"}}), HasSubstr("interleaved"));
  EXPECT_THAT(refusal({}, {{"swiglu", "down"}}), HasSubstr("would make the operand"));
  EXPECT_THAT(refusal({}, {{"oproj", "residual1"}, {"residual1", "norm2"}}),
              HasSubstr("norm2 needs a full row"));
  EXPECT_THAT(refusal({}, {{"residual1", "residual2"}}), HasSubstr("cycle through"));
  EXPECT_THAT(refusal({"interleave_gate_up"}, {{"gate_up", "swiglu"}, {"swiglu", "down"}}),
              HasSubstr("second mainloop"));
}

TEST(CustomPlan, RefusesHalvesOfAProductThatAreInDifferentTiles) {
  // A framework's SwiGLU reads the gate's half of gate_up, then its product with the other half.
  const std::vector<std::string> apart = {"decompose_swiglu"};
  EXPECT_THAT(refusal(apart, {{"gate_up", "swiglu_silu"}, {"gate_up", "swiglu_mul"}}),
              HasSubstr("beside each other, which are in different tiles"));
  EXPECT_THAT(refusal(apart, {{"gate_up", "swiglu_silu"}, {"swiglu_silu", "swiglu_mul"}}),
              HasSubstr("different tiles"));
  EXPECT_EQ(refusal(apart, {{"swiglu_silu", "swiglu_mul"}}), "accepted");
  EXPECT_EQ(refusal(apart, {{"gate_up", "swiglu_silu"}}), "accepted");
}

TEST(CustomPlan, RefusesUnknownNamesWithTheNearest) {
  EXPECT_THAT(refusal({"merge_rop"}, {}), HasSubstr("did you mean 'merge_rope'"));
  EXPECT_THAT(refusal({}, {{"gate_upp", "swiglu"}}), HasSubstr("did you mean 'gate_up'"));
  EXPECT_THAT(refusal({}, {{"qkv", "down"}}), HasSubstr("down does not read what qkv writes"));
  EXPECT_THAT(refusal({"rotate_statistics"}, {}), HasSubstr("does not apply"));
}

Graph training_block() { return build_block(test::tiny_llama(), test::train(2, 5)); }

TEST(CustomPlan, TrainsWithFusedAttentionWhenNothingIsChosen) {
  const Plan plan = make_custom_plan(training_block(), {}, {});
  EXPECT_THAT(check_plan(plan), IsEmpty());
  EXPECT_NE(test::find_kernel(plan, "d_attention"), nullptr);
}

TEST(CustomPlan, CanMoveANormsGradientIntoTheGemm) {
  const Plan plan =
      make_custom_plan(training_block(),
                       {"interleave_gate_up", "recompute", "split_norm_keeping_weight",
                        "defer_norm_backward", "split_column_sums"},
                       {{"d_down", "d_swiglu"},
                        {"d_swiglu", "dot_norm2"},
                        {"d_gate_up", "d_norm2"},
                        {"d_gate_up", "dw_norm2_partial"}});
  EXPECT_THAT(check_plan(plan), IsEmpty());
  EXPECT_EQ(test::find_kernel(plan, "d_gate_up")->ops.size(), 3u);
  EXPECT_FALSE(plan.preparation.results.empty());
}

TEST(CustomPlan, RefusesIllegalChoicesInTheBackwardPass) {
  const auto refusal_of = [](const std::vector<std::string>& rewrites,
                             const std::vector<OnChipEdge>& edges) {
    try {
      static_cast<void>(make_custom_plan(training_block(), rewrites, edges));
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal_of({}, {{"d_gate_up", "d_norm2"}}), HasSubstr("needs a full row"));
  EXPECT_THAT(refusal_of({}, {{"d_gate_up", "dw_norm2"}}), HasSubstr("sums over all 10 rows"));
  EXPECT_THAT(refusal_of({}, {{"gate_up", "d_swiglu"}}), HasSubstr("the rest of the model"));
  EXPECT_THAT(refusal_of({"accumulate_dq", "merge_rope"}, {}), HasSubstr("comes before"));
  EXPECT_THAT(refusal_of({"accumulate_dq", "recompute"}, {}), HasSubstr("before it is rewritten"));
}

}  // namespace
}  // namespace fuseline
