// Two streams of tokens, each with weights of its own, attend to each other: the rows of both lie
// in one tensor, stream behind stream within every sequence.
#include <gtest/gtest.h>

#include <random>

#include "model/backward.h"
#include "model/operators/all_operators.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/plan_proof.h"

namespace fuseline {
namespace {

using test::expect_proved;
using test::GraphByHand;
using test::pick;
using test::Proof;

struct Streams {
  std::int64_t batch = 2;
  std::int64_t image = 37, text = 11;  // tokens of a sequence
  std::int64_t heads = 3, width = 8, model = 20;

  [[nodiscard]] std::int64_t joint() const { return image + text; }
};

// `in_place`: the products of both streams write to their rows of the joint tensor; otherwise an
// operator copies them there.
Graph joint_attention(const Streams& s, bool in_place) {
  GraphByHand b;
  const std::int64_t D = s.model;
  const std::int64_t Q = s.heads * s.width;
  const Operand x = b.tensor("x", Role::input, s.batch * s.image, D);
  const Operand c = b.tensor("c", Role::input, s.batch * s.text, D);
  const Operand wx = b.tensor("w_x", Role::weight, 3 * Q, D);
  const Operand wc = b.tensor("w_c", Role::weight, 3 * Q, D);
  const Operand qkv = b.tensor("qkv", Role::activation, s.batch * s.joint(), 3 * Q);
  const auto rows = [&](const Operand& of, std::int64_t begin, std::int64_t count) {
    return b.graph.rows_of_parts(of.tensor, s.batch, begin, count);
  };
  if (in_place) {
    b.op("qkv_x", operators::gemm, {x, wx}, {rows(qkv, 0, s.image)});
    b.op("qkv_c", operators::gemm, {c, wc}, {rows(qkv, s.image, s.text)});
  } else {
    const Operand of_x = b.tensor("qkv_x", Role::activation, s.batch * s.image, 3 * Q);
    const Operand of_c = b.tensor("qkv_c", Role::activation, s.batch * s.text, 3 * Q);
    b.op("qkv_x", operators::gemm, {x, wx}, {of_x});
    b.op("qkv_c", operators::gemm, {c, wc}, {of_c});
    b.op("join", operators::concat_rows, {of_x, of_c}, {qkv}, JointSequences{s.batch});
  }
  AttentionShape a;
  a.heads = a.kv_heads = s.heads;
  a.head_width = s.width;
  a.batch = s.batch;
  a.q_tokens = a.kv_tokens = s.joint();
  a.scale = 1 / std::sqrt(static_cast<double>(s.width));
  const std::int64_t rows_of_scores = s.batch * s.heads * s.joint();
  const Operand scores = b.tensor("scores", Role::activation, rows_of_scores, s.joint());
  const Operand probs = b.tensor("probs", Role::activation, rows_of_scores, s.joint());
  const Operand y = b.tensor("y", Role::activation, s.batch * s.joint(), Q);
  const auto columns = [&](int part) { return b.graph.columns(qkv.tensor, part * Q, Q); };
  b.op("scores", operators::attention_scores, {columns(0), columns(1)}, {scores}, a);
  b.op("softmax", operators::softmax, {scores}, {probs}, a);
  b.op("context", operators::attention_context, {probs, columns(2)}, {y}, a);
  const Operand out_x = b.tensor("out_x", Role::output, s.batch * s.image, D);
  const Operand out_c = b.tensor("out_c", Role::output, s.batch * s.text, D);
  const Operand vx = b.tensor("v_x", Role::weight, D, Q);
  const Operand vc = b.tensor("v_c", Role::weight, D, Q);
  b.op("proj_x", operators::gemm, {rows(y, 0, s.image), vx}, {out_x});
  b.op("proj_c", operators::gemm, {rows(y, s.image, s.text), vc}, {out_c});
  return b.graph;
}

TEST(JointAttention, IsProvedUnderEveryPolicy) {
  for (const bool in_place : {false, true}) {
    const Graph joint = joint_attention({}, in_place);
    const Proof proof(joint);
    for (const std::string& policy : executor::all_policies())
      proof.of(make_plan(policy, joint), policy + (in_place ? " in place" : ""));
  }
}

TEST(JointAttention, IsProvedForRandomSizes) {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    const Streams s{pick(random, 1, 3), pick(random, 1, 300),    pick(random, 1, 150),
                    pick(random, 1, 4), 2 * pick(random, 1, 20), pick(random, 2, 50)};
    const std::string policy = round % 2 == 0 ? "coda" : "per-operator";
    expect_proved(make_plan(policy, joint_attention(s, round % 3 == 0)),
                  policy + " round " + std::to_string(round));
  }
}

TEST(JointAttention, IsTrained) {
  for (const bool in_place : {false, true}) {
    const Graph joint = differentiate(joint_attention({}, in_place));
    const Proof proof(joint);
    for (const char* policy : {"unfused", "per-operator", "coda"})
      proof.of(make_plan(policy, joint), policy);
  }
}

TEST(JointAttention, WritesInPlaceMoveFewerBytes) {
  const Streams s{.batch = 1, .image = 1024, .text = 154, .heads = 24, .width = 64, .model = 1536};
  const Gpu gpu = load_gpu("h200");
  const auto predict = [&](bool in_place) {
    return simulate(make_plan("per-operator", joint_attention(s, in_place)), gpu,
                    Fidelity::hierarchy);
  };
  const PlanEstimate copied = predict(false);
  const PlanEstimate placed = predict(true);
  EXPECT_EQ(copied.launches, placed.launches + 1);
  EXPECT_LT(placed.time, copied.time);
}

// A stream that is left out of the joint rows, or one that lies where the other belongs, is seen.
TEST(JointAttention, SeesRowsThatNobodyWrites) {
  GraphByHand b;
  const Operand x = b.tensor("x", Role::input, 12, 8);
  const Operand w = b.tensor("w", Role::weight, 8, 8);
  const Operand joint = b.tensor("joint", Role::activation, 20, 8);
  const Operand y = b.tensor("y", Role::output, 20, 8);
  b.op("some", operators::gemm, {x, w}, {b.graph.rows_of_parts(joint.tensor, 2, 0, 6)});
  b.op("all", operators::gemm, {joint, w}, {y});
  const std::vector<std::string> problems = check_plan(make_plan("unfused", b.graph));
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "all loads joint before it is stored: kernels against the dependencies");
}

}  // namespace
}  // namespace fuseline
