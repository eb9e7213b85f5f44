#include "model/rewrites/decompose_modulation.h"

#include <algorithm>
#include <utility>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_decompose_modulation {
namespace {

bool is_modulation(const Op& op) {
  return op.kind == operators::modulate || op.kind == operators::gate_add;
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), is_modulation); }

bool decompose(const Op& op, Graph& to) {
  if (!is_modulation(op)) return false;
  const auto step = [&](const std::string& suffix, OpKind kind, std::vector<Operand> reads,
                        const Operand& write, const Attributes& attributes) {
    to.add_op({op.name + suffix, kind, std::move(reads), {write}, attributes, op.site, op.pass});
  };
  const auto result = [&](const std::string& suffix, const Operand& like) {
    const Tensor t = to.tensor(op.writes[0].tensor);
    const std::string symbol = like.rows == t.rows ? t.symbol : "[B, D]";
    return to.whole(add_activation(to, op.name + suffix, symbol, t.dtype, like.rows, like.cols));
  };
  if (op.kind == operators::gate_add) {
    const Operand gated = result("_gated", op.reads[1]);
    step("_mul", operators::mul_sequence, {op.reads[1], op.reads[2]}, gated, op.attributes);
    step("_add", operators::residual_add, {op.reads[0], gated}, op.writes[0], {});
    return true;
  }
  const Operand factor = result("_factor", op.reads[1]);
  const Operand scaled = result("_scaled", op.reads[0]);
  step("_one", operators::add_scalar, {op.reads[1]}, factor, Scalar{1.0});
  step("_mul", operators::mul_sequence, {op.reads[0], factor}, scaled, op.attributes);
  step("_add", operators::add_sequence, {scaled, op.reads[2]}, op.writes[0], op.attributes);
  return true;
}

}  // namespace
}  // namespace in_decompose_modulation

Rewrite decompose_modulation() {
  return {"decompose_modulation", "a modulation or a gated sum becomes framework primitives",
          in_decompose_modulation::applies, [](Block& block) {
            block.graph = replace_ops(block.graph, in_decompose_modulation::decompose);
          }};
}

}  // namespace fuseline
