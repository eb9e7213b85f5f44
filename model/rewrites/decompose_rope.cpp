#include "model/rewrites/decompose_rope.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

bool is_halved_rope(const Op& op) {
  const bool rope = op.kind == operators::rope || op.kind == operators::rope_backward;
  return rope && !has_adjacent_pairs(op);
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), is_halved_rope); }

// Emits the steps of one rotation, each writing a tensor of its own.
class Steps {
 public:
  Steps(const Op& rope, Graph& to) : rope_(rope), to_(to) {}

  Operand step(const std::string& suffix, OpKind kind, std::vector<Operand> reads,
               std::int64_t cols, bool swapped = false) {
    const Tensor like = to_.tensor(rope_.writes[0].tensor);
    const Operand& x = rope_.reads[0];
    const std::string name = rope_.name + "_" + suffix;
    const std::string symbol = cols == x.cols ? like.symbol : "[M, H·d/2]";
    const Operand y = to_.whole(add_activation(to_, name, symbol, like.dtype, x.rows, cols));
    const std::int64_t d = rope_.attributes.as<Pairs>().head_width;
    emit(suffix, kind, std::move(reads), y, Halves{.head_width = d, .swapped = swapped});
    return y;
  }
  void emit(const std::string& suffix, OpKind kind, std::vector<Operand> reads,
            const Operand& write, const Attributes& attributes) {
    to_.add_op({rope_.name + "_" + suffix,
                kind,
                std::move(reads),
                {write},
                attributes,
                rope_.site,
                rope_.pass});
  }

 private:
  const Op& rope_;
  Graph& to_;
};

// The slice that is rotated and the concatenation of its halves lie in different orders, unless
// there is only one token.
TwoLayouts layouts(const Op& rope) { return {.differ = rope.reads[1].rows > 1}; }

void forward(const Op& rope, Graph& to) {
  Steps steps(rope, to);
  const Operand x = rope.reads[0];
  const Operand c = steps.step("mul_cos", operators::mul_table, {x, rope.reads[1]}, x.cols);
  const Operand n = steps.step("negate", operators::negate_half, {x}, x.cols / 2);
  const Operand r = steps.step("concat", operators::concat_halves, {n, x}, x.cols);
  const Operand s = steps.step("mul_sin", operators::mul_table, {r, rope.reads[2]}, x.cols);
  steps.emit("add", operators::add, {c, s}, rope.writes[0], layouts(rope));
}

// In the order in which a framework's reverse mode comes to them.
void backward(const Op& rope, Graph& to) {
  Steps steps(rope, to);
  const Operand dy = rope.reads[0];
  const Operand s = steps.step("mul_sin", operators::mul_table, {dy, rope.reads[2]}, dy.cols);
  const Operand n = steps.step("negate", operators::negate_half, {s}, dy.cols / 2, true);
  const Operand c = steps.step("mul_cos", operators::mul_table, {dy, rope.reads[1]}, dy.cols);
  const Operand r = steps.step("concat", operators::concat_halves, {n, s}, dy.cols, true);
  steps.emit("add", operators::add, {r, c}, rope.writes[0], layouts(rope));
}

bool decompose(const Op& rope, Graph& to) {
  if (!is_halved_rope(rope)) return false;
  if (rope.kind == operators::rope)
    forward(rope, to);
  else
    backward(rope, to);
  return true;
}

}  // namespace

Rewrite decompose_rope() {
  return {"decompose_rope", "RoPE becomes 5 framework primitives a tensor", applies,
          [](Block& block) { block.graph = replace_ops(block.graph, decompose); }};
}

}  // namespace fuseline
