#include "model/rewrites/decompose_norm.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), [](const Op& op) { return op.kind == OpKind::rms_norm; });
}

bool decompose(const Op& norm, Graph& to) {
  if (norm.kind != OpKind::rms_norm) return false;
  const Operand x = norm.reads[0];
  const std::string shape = to.tensor(x.tensor).symbol;
  const Dtype type = to.tensor(norm.writes[0].tensor).dtype;
  const auto step = [&](const std::string& suffix, OpKind kind, std::vector<Operand> reads,
                        const std::string& symbol, Dtype dtype, std::int64_t cols,
                        OpAttributes attributes = {}) {
    const std::string name = norm.name + "_" + suffix;
    const Operand y = to.whole(add_activation(to, name, symbol, dtype, x.rows, cols));
    to.add_op({name, kind, std::move(reads), {y}, attributes, norm.site});
    return y;
  };
  OpAttributes eps;
  eps.scalar = norm.attributes.eps;
  const Operand x32 = step("float", OpKind::cast, {x}, shape, Dtype::fp32, x.cols);
  const Operand s = step("square", OpKind::square, {x32}, shape, Dtype::fp32, x.cols);
  const Operand m = step("mean", OpKind::row_mean, {s}, "[M, 1]", Dtype::fp32, 1);
  const Operand e = step("eps", OpKind::add_scalar, {m}, "[M, 1]", Dtype::fp32, 1, eps);
  const Operand r = step("rsqrt", OpKind::rsqrt, {e}, "[M, 1]", Dtype::fp32, 1);
  const Operand n32 = step("scale", OpKind::mul_rows, {x32, r}, shape, Dtype::fp32, x.cols);
  const Operand n = step("cast", OpKind::cast, {n32}, shape, type, x.cols);
  to.add_op(
      {norm.name + "_weight", OpKind::mul_cols, {n, norm.reads[1]}, norm.writes, {}, norm.site});
  return true;
}

}  // namespace

Rewrite decompose_norm() {
  return {"decompose_norm", "RMSNorm becomes 8 framework primitives with fp32 intermediates",
          applies, [](Block& block) { block.graph = replace_ops(block.graph, decompose); }};
}

}  // namespace fuseline
