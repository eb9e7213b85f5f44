// One rule for each differentiable operator kind. A rule reads the operator at hand, the gradient
// dy of its result and the forward values it needs, and appends the operators of its gradient. What
// a framework launches for one of them (SiLU's gradient, two products and a concatenation for
// SwiGLU) is the decompose rewrites' business.
#include "base/error.h"
#include "model/backward_adjoint.h"

namespace fuseline {

namespace {

// dw = dy^T x, then dx = dy w.
void gemm(Adjoint& a) {
  const Op& op = a.op();
  FUSELINE_ASSERT(!op.attributes.a_is_km && !op.attributes.b_is_kn, op.name);
  if (a.wants(1)) {
    OpAttributes layout;
    layout.a_is_km = layout.b_is_kn = true;
    const Operand x = a.forward_value(op.reads[0]);
    a.emit("dw_" + op.name, OpKind::gemm, {a.dy(), x}, {a.target(1)}, layout);
  }
  if (a.wants(0)) {
    OpAttributes layout;
    layout.b_is_kn = true;
    const Operand w = a.forward_value(op.reads[1]);
    a.emit("d_" + op.name, OpKind::gemm, {a.dy(), w}, {a.target(0)}, layout);
  }
}

void attention_context(Adjoint& a) {
  const Op& op = a.op();
  if (a.saves_log_sum_exp()) {
    const Operand delta = a.make("delta", "[B·H·T, 1]", Dtype::fp32, op.reads[0].rows, 1);
    a.emit("d_dot", OpKind::attention_backward_dot, {a.dy(), a.forward_value(op.writes[0])},
           {delta}, op.attributes);
    a.leave_delta(op.reads[0].tensor, delta);
  }
  if (a.wants(1)) {
    const Operand probs = a.forward_value(op.reads[0]);
    a.emit("d_v", OpKind::attention_d_v, {probs, a.dy()}, {a.target(1)}, op.attributes);
  }
  if (a.wants(0)) {
    const Operand v = a.forward_value(op.reads[1]);
    a.emit("d_probs", OpKind::attention_d_probs, {a.dy(), v}, {a.target(0)}, op.attributes);
  }
}

void softmax(Adjoint& a) {
  const Op& op = a.op();
  const Operand probs = a.forward_value(op.writes[0]);
  if (const Operand* delta = a.delta(op.writes[0].tensor))
    a.emit("d_softmax", OpKind::softmax_backward_delta, {probs, a.dy(), *delta}, {a.target(0)},
           op.attributes);
  else
    a.emit("d_softmax", OpKind::softmax_backward, {probs, a.dy()}, {a.target(0)}, op.attributes);
}

void attention_scores(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(0)) {
    const Operand k = a.forward_value(op.reads[1]);
    a.emit("d_q", OpKind::attention_d_q, {a.dy(), k}, {a.target(0)}, op.attributes);
  }
  if (a.wants(1)) {
    const Operand q = a.forward_value(op.reads[0]);
    a.emit("d_k", OpKind::attention_d_k, {a.dy(), q}, {a.target(1)}, op.attributes);
  }
}

void norm(Adjoint& a) {
  const Op& op = a.op();
  const bool layer = op.kind == OpKind::layer_norm;
  const Operand stats = a.row_statistics(op.name);
  const Operand x = a.forward_value(op.reads[0]);
  if (a.wants(0))
    a.emit("d_" + op.name, layer ? OpKind::layer_norm_backward : OpKind::rms_norm_backward,
           {a.dy(), x, op.reads[1], stats}, {a.target(0)}, op.attributes);
  if (a.wants(1))
    a.emit("dw_" + op.name, OpKind::norm_weight_grad, {a.dy(), x, stats}, {a.target(1)},
           op.attributes);
  if (layer && a.wants(2)) a.emit("db_" + op.name, OpKind::column_sum, {a.dy()}, {a.target(2)});
}

void rope(Adjoint& a) {
  const Op& op = a.op();
  a.emit("d_" + op.name, OpKind::rope_backward, {a.dy(), op.reads[1], op.reads[2]}, {a.target(0)},
         op.attributes);
}

void swiglu(Adjoint& a) {
  const Op& op = a.op();
  const Operand gu = a.forward_value(op.reads[0]);
  std::vector<Operand> writes{a.target(0)};
  if (const Operand* again = a.wanted_again()) writes.push_back(*again);
  a.emit("d_" + op.name, OpKind::swiglu_backward, {a.dy(), gu}, std::move(writes), op.attributes);
}

template <OpKind kind>
void element_wise(Adjoint& a) {
  const Op& op = a.op();
  const Operand x = a.forward_value(op.reads[0]);
  a.emit("d_" + op.name, kind, {a.dy(), x}, {a.target(0)}, op.attributes);
}

// The bias's gradient carries the name of the GEMM's: "qkv_bias" gives "db_qkv".
void bias_add(Adjoint& a) {
  const Op& op = a.op();
  a.pass(0, a.dy());
  if (!a.wants(1)) return;
  const std::string name = op.name.substr(0, op.name.rfind("_bias"));
  a.emit("db_" + name, OpKind::column_sum, {a.dy()}, {a.target(1)});
}

void add(Adjoint& a) {
  a.pass(0, a.dy());
  a.pass(1, a.dy());
}

void mul(Adjoint& a) {
  const Op& op = a.op();
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    if (!a.wants(i)) continue;
    const Operand other = a.forward_value(op.reads[1 - i]);
    a.emit("d" + std::to_string(i) + "_" + op.name, OpKind::mul, {a.dy(), other}, {a.target(i)},
           op.attributes);
  }
}

void cross_entropy(Adjoint& a) {
  const Op& op = a.op();
  const Operand x = a.forward_value(op.reads[0]);
  a.emit("d_" + op.name, OpKind::cross_entropy_backward, {a.dy(), x, op.reads[1], a.log_sum_exp()},
         {a.target(0)}, op.attributes);
}

// Rows of the table that no token names have the gradient 0.
void embedding(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(1))
    a.emit("dw_" + op.name, OpKind::embedding_backward, {a.dy(), op.reads[0]}, {a.target(1)},
           op.attributes);
  if (op.reads.size() > 2 && a.wants(2))
    a.emit("dw_" + op.name + "_position", OpKind::embedding_backward, {a.dy()}, {a.target(2)},
           op.attributes);
}

void cast(Adjoint& a) { a.emit("d_" + a.op().name, OpKind::cast, {a.dy()}, {a.target(0)}); }

}  // namespace

BackwardRule backward_rule(OpKind kind) {
  switch (kind) {
    case OpKind::gemm:
      return gemm;
    case OpKind::attention_scores:
      return attention_scores;
    case OpKind::softmax:
      return softmax;
    case OpKind::attention_context:
      return attention_context;
    case OpKind::rms_norm:
    case OpKind::layer_norm:
      return norm;
    case OpKind::rope:
      return rope;
    case OpKind::swiglu:
      return swiglu;
    case OpKind::gelu:
      return element_wise<OpKind::gelu_backward>;
    case OpKind::silu:
      return element_wise<OpKind::silu_backward>;
    case OpKind::bias_add:
      return bias_add;
    case OpKind::residual_add:
    case OpKind::add:
      return add;
    case OpKind::mul:
      return mul;
    case OpKind::cast:
      return cast;
    case OpKind::cross_entropy:
      return cross_entropy;
    case OpKind::embedding:
      return embedding;
    default:
      return nullptr;
  }
}

}  // namespace fuseline
