#include "model/rewrites/decompose_norm.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_decompose_norm {
namespace {

const Op* weight_gradient(const Graph& graph, const Op& norm) {
  for (const Op& op : graph.ops())
    if (op.kind == operators::norm_weight_grad && op.reads[0].tensor == norm.reads[0].tensor)
      return &op;
  return nullptr;
}

// The forward norm whose statistics the gradient reads.
bool has_forward(const Graph& graph, const Op& gradient) {
  return std::ranges::any_of(graph.ops(), [&](const Op& op) {
    return op.kind == operators::rms_norm && op.writes.size() > 1 &&
           std::ranges::any_of(gradient.reads,
                               [&](const Operand& o) { return o.tensor == op.writes[1].tensor; });
  });
}

// A norm's gradient is rewritten together with the norm and with its weight's gradient, which other
// rewrites may have taken apart.
bool applies(const Graph& graph) {
  const auto& ops = graph.ops();
  return std::ranges::any_of(ops, [](const Op& op) { return op.kind == operators::rms_norm; }) &&
         std::ranges::none_of(ops, [&](const Op& op) {
           return op.kind == operators::rms_norm_backward &&
                  (weight_gradient(graph, op) == nullptr || !has_forward(graph, op));
         });
}

// Emits the steps of one norm or its gradient, each writing a tensor of its own.
class Steps {
 public:
  Steps(const Op& norm, Graph& to) : norm_(norm), to_(to) {}

  // `like` and `dtype`: shape and type of the result; `attributes`: of add_scalar, scale,
  // expand_rows.
  Operand step(const std::string& suffix, OpKind kind, std::vector<Operand> reads,
               const Operand& like, Dtype dtype, const Attributes& attributes = {}) {
    const Operand y = tensor(suffix, like, dtype);
    emit(suffix, kind, std::move(reads), y, attributes);
    return y;
  }
  Operand tensor(const std::string& suffix, const Operand& like, Dtype dtype) {
    const Tensor t = to_.tensor(like.tensor);
    // Columns of a wider tensor have no words of their own.
    const std::string symbol =
        like.cols == t.cols ? t.symbol : "[M, " + std::to_string(like.cols) + "]";
    return to_.whole(
        add_activation(to_, norm_.name + "_" + suffix, symbol, dtype, like.rows, like.cols));
  }
  Operand row_vector(const std::string& suffix, std::int64_t rows) {
    return to_.whole(
        add_activation(to_, norm_.name + "_" + suffix, "[M, 1]", Dtype::fp32, rows, 1));
  }
  void emit(const std::string& suffix, OpKind kind, std::vector<Operand> reads,
            const Operand& write, const Attributes& attributes = {}) {
    to_.add_op({norm_.name + "_" + suffix,
                kind,
                std::move(reads),
                {write},
                attributes,
                norm_.site,
                norm_.pass});
  }

 private:
  const Op& norm_;
  Graph& to_;
};

void forward(const Op& norm, Graph& to) {
  Steps steps(norm, to);
  const Operand x = norm.reads[0];
  const Dtype type = to.tensor(norm.writes[0].tensor).dtype;
  const Operand x32 = steps.step("float", operators::cast, {x}, x, Dtype::fp32);
  const Operand s = steps.step("square", operators::square, {x32}, x, Dtype::fp32);
  const Operand m = steps.row_vector("mean", x.rows);
  steps.emit("mean", operators::row_mean, {s}, m);
  const Operand e = steps.step("eps", operators::add_scalar, {m}, m, Dtype::fp32,
                               Scalar{norm.attributes.as<NormEps>().eps});
  const Operand r = norm.writes.size() > 1 ? norm.writes[1] : steps.row_vector("rsqrt", x.rows);
  steps.emit("rsqrt", operators::rsqrt, {e}, r);
  const Operand n32 = steps.step("scale", operators::mul_rows, {x32, r}, x, Dtype::fp32);
  const Operand n = steps.step("cast", operators::cast, {n32}, x, type);
  steps.emit("weight", operators::mul_cols, {n, norm.reads[1]}, norm.writes[0]);
}

// What the forward primitives stored.
struct Saved {
  Operand x32;  // float(x)
  Operand n;    // x·r in the block's type
};

Saved saved_of(const Graph& graph, const Operand& r) {
  for (const Op& op : graph.ops()) {
    if (op.kind != operators::mul_rows || op.reads[1].tensor != r.tensor) continue;
    const std::vector<OpId> readers = graph.consumers(op.writes[0].tensor);
    for (const OpId id : readers)
      if (graph.op(id).kind == operators::cast) return {op.reads[0], graph.op(id).writes[0]};
  }
  FUSELINE_ASSERT(false, "the forward pass has no decomposed norm");
}

// In the order in which a framework's reverse mode comes to them. The sum over a row that the
// gradient of r needs is written as a mean: the factor D cancels with that of the mean of squares.
void backward(const Op& norm, const Op& weight, Graph& to) {
  Steps steps(norm, to);
  const Operand dy = norm.reads[0];
  const Operand r = norm.reads[3];
  const Saved saved = saved_of(to, r);
  const Dtype type = to.tensor(dy.tensor).dtype;
  constexpr Dtype fp32 = Dtype::fp32;
  const Operand dyn = steps.step("mul", operators::mul, {dy, saved.n}, dy, type);
  const Operand dn = steps.step("weight", operators::mul_cols, {dy, norm.reads[2]}, dy, type);
  to.add_op(
      {weight.name, operators::column_sum, {dyn}, weight.writes, {}, weight.site, weight.pass});
  const Operand dn32 = steps.step("float", operators::cast, {dn}, dy, fp32);
  const Operand dr_terms = steps.step("dot", operators::mul, {dn32, saved.x32}, dy, fp32);
  const Operand dx1 = steps.step("scale", operators::mul_rows, {dn32, r}, dy, fp32);
  const Operand dr = steps.row_vector("sum", dy.rows);
  steps.emit("sum", operators::row_mean, {dr_terms}, dr);
  const Operand r3 = steps.step("cube", operators::cube, {r}, dr, fp32);
  const Operand slope = steps.step("slope", operators::scale, {r3}, dr, fp32, Scalar{-0.5});
  const Operand dm = steps.step("dmean", operators::mul, {dr, slope}, dr, fp32);
  const Operand ds = steps.step("expand", operators::expand_rows, {dm}, dy, fp32, Scalar{1.0});
  const Operand twice = steps.step("twice", operators::scale, {saved.x32}, dy, fp32, Scalar{2.0});
  const Operand dx2 = steps.step("dsquare", operators::mul, {ds, twice}, dy, fp32);
  const Operand dx = steps.step("add", operators::add, {dx1, dx2}, dy, fp32);
  steps.emit("cast", operators::cast, {dx}, norm.writes[0]);
}

void apply(Block& block) {
  const Graph from = block.graph;
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    if (op.kind == operators::rms_norm) {
      forward(op, to);
      return true;
    }
    if (op.kind == operators::rms_norm_backward) {
      const Op* weight = weight_gradient(from, op);
      FUSELINE_ASSERT(weight != nullptr, op.name + " without the gradient of the weight");
      backward(op, *weight, to);
      return true;
    }
    // Emitted with the norm's. RMSNorm's statistics are one column.
    return op.kind == operators::norm_weight_grad && op.reads[2].cols == 1;
  });
}

}  // namespace
}  // namespace in_decompose_norm

Rewrite decompose_norm() {
  return {"decompose_norm", "RMSNorm becomes 8 framework primitives with fp32 intermediates",
          in_decompose_norm::applies, in_decompose_norm::apply};
}

}  // namespace fuseline
