#include "model/rewrites/decompose_rope.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace in_decompose_rope {
namespace {

bool is_rotation(const Op& op) {
  return op.kind == operators::rope || op.kind == operators::rope_backward;
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), is_rotation); }

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

// Rotations of adjacent pairs, or of a part of each head. A framework takes views of the columns
// that turn, exchanges the columns of each pair, and puts what does not turn behind the sum.
class PartSteps {
 public:
  PartSteps(const Op& rope, Graph& to)
      : rope_(rope),
        to_(to),
        pairs_(rope.attributes.as<Pairs>()),
        x_(rope.reads[0]),
        heads_(x_.cols / pairs_.head_width) {}

  void run() {
    const bool inverse = rope_.kind == operators::rope_backward;
    const std::int64_t turned = heads_ * pairs_.turned();
    const Operand sum = whole() ? rope_.writes[0] : tensor("add", turned);
    if (!inverse) {
      const Operand c = times(x_, 1, "mul_cos");
      const Operand s = tensor("mul_sin", turned);
      emit("mul_sin", operators::mul_table, {exchanged(x_, head(), false), rope_.reads[2]}, s);
      emit("add", operators::add, {c, s}, sum, TwoLayouts{whole() && rope_.reads[1].rows > 1});
    } else {
      const Operand s = times(x_, 2, "mul_sin");
      const Operand c = times(x_, 1, "mul_cos");
      const Operand r = exchanged(s, pairs_.turned(), true);
      emit("add", operators::add, {r, c}, sum, TwoLayouts{whole() && rope_.reads[1].rows > 1});
    }
    if (whole()) return;
    const std::int64_t rest = head() - pairs_.turned();
    emit("join", operators::concat_parts, {sum, x_}, rope_.writes[0],
         HeadPart{.part = {head(), pairs_.turned(), 1, rest}, .joined = head(), .behind = true});
  }

 private:
  [[nodiscard]] std::int64_t head() const { return pairs_.head_width; }
  [[nodiscard]] bool whole() const { return pairs_.turned() == head(); }

  Operand tensor(const std::string& suffix, std::int64_t cols) {
    const Tensor like = to_.tensor(rope_.writes[0].tensor);
    return to_.whole(
        add_activation(to_, rope_.name + "_" + suffix, "[M, H·r]", like.dtype, x_.rows, cols));
  }
  void emit(const std::string& suffix, OpKind kind, std::vector<Operand> reads,
            const Operand& write, const Attributes& attributes = {}) {
    to_.add_op({rope_.name + "_" + suffix,
                kind,
                std::move(reads),
                {write},
                attributes,
                rope_.site,
                rope_.pass});
  }
  // The columns that turn, times the cosines (table 1) or sines (table 2).
  Operand times(const Operand& x, std::size_t table, const std::string& suffix) {
    const Operand y = tensor(suffix, heads_ * pairs_.turned());
    if (whole())
      emit(suffix, operators::mul_table, {x, rope_.reads[table]}, y);
    else
      emit(suffix, operators::mul_table_part, {x, rope_.reads[table]}, y,
           HeadPart{.part = {head(), 0, 1, pairs_.turned()}});
    return y;
  }
  // (a, b) of each pair becomes (-b, a), or (b, -a) for the inverse. `group`: columns of `x` that
  // hold a head's pairs.
  Operand exchanged(const Operand& x, std::int64_t group, bool inverse) {
    const std::int64_t half = pairs_.turned() / 2;
    const auto side = [&](bool second) {
      if (pairs_.interleaved) return ColumnPart{group, second ? 1 : 0, 2, half};
      return ColumnPart{group, second ? half : 0, 1, half};
    };
    const Operand n = tensor("negate", heads_ * half);
    emit("negate", operators::negate_part, {x}, n, HeadPart{.part = side(!inverse)});
    const Operand r = tensor("exchange", heads_ * pairs_.turned());
    emit("exchange", operators::concat_parts, {n, x}, r,
         HeadPart{.part = side(inverse),
                  .joined = pairs_.interleaved ? 2 : pairs_.turned(),
                  .behind = !inverse});
    return r;
  }

  const Op& rope_;
  Graph& to_;
  const Pairs pairs_;
  const Operand x_;
  const std::int64_t heads_;
};

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
  if (!is_rotation(rope)) return false;
  const Pairs& pairs = rope.attributes.as<Pairs>();
  if (pairs.interleaved || pairs.turned() < pairs.head_width)
    PartSteps(rope, to).run();
  else if (rope.kind == operators::rope)
    forward(rope, to);
  else
    backward(rope, to);
  return true;
}

}  // namespace
}  // namespace in_decompose_rope

Rewrite decompose_rope() {
  return {
      "decompose_rope", "RoPE becomes 5 framework primitives a tensor", in_decompose_rope::applies,
      [](Block& block) { block.graph = replace_ops(block.graph, in_decompose_rope::decompose); }};
}

}  // namespace fuseline
