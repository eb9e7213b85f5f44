#include "model/primitives/pair_map.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"

namespace fuseline {

namespace {

// In a program's text and of cuda/kernels.
const char* function_of(PairFn fn) {
  switch (fn) {
    case PairFn::rope:
      return "rope";
    case PairFn::rope_inverse:
      return "rope_inverse";
    case PairFn::swiglu:
      return "swiglu";
    case PairFn::swiglu_backward:
      return "swiglu_backward";
  }
  FUSELINE_ASSERT(false, "unknown pair map");
}

void swap_pairs(Matrix& m, std::int64_t distance, std::int64_t group) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t g = 0; g + 2 * distance <= m.cols; g += group)
      for (std::int64_t j = 0; j < distance; ++j)
        std::swap(m.row(r)[g + j], m.row(r)[g + j + distance]);
}

}  // namespace

void PairMap::rotate(StreamCode& code) const {
  const char* rope = function_of(fn);
  if (code.pairs_in_thread(distance)) {
    const std::string x = code.use(in.at(0));
    const std::string cos = code.use(in.at(1));
    const std::string sin = code.use(in.at(2));
    code.step(rope);
    code.define(out.at(0), fmt::format("{}<{}>({}, {}, {})", rope, distance == 1, x, cos, sin));
    return;
  }
  std::string arguments = code.place_of(in.at(0));
  for (const Value v : in) arguments += ", " + code.computed_at("there", code.cols(in[0]), v);
  code.step(rope);
  code.define(out.at(0),
              fmt::format("rope_apart<{}, {}, {}>({})", distance, fn == PairFn::rope_inverse,
                          head > 0 ? head : 2 * distance, arguments));
}

std::vector<Value> PairMap::uses() const { return in; }

std::vector<Value> PairMap::defines() const { return out; }

std::vector<Access> PairMap::accesses() const { return {}; }

std::vector<ValueShape> PairMap::results(const ValueShapes& made, std::int64_t) const {
  const std::int64_t width = shape_of(made, in.front()).width;
  if (fn == PairFn::swiglu) return {{Form::tile, width / 2}};
  if (fn == PairFn::swiglu_backward) return {{Form::tile, width}, {Form::tile, width / 2}};
  return {shape_of(made, in.front())};
}

std::vector<ColumnRelation> PairMap::relations() const {
  const auto half = [this](Value v) { return ColumnRelation{in[0], v, 1, 2, 0, true}; };
  if (fn == PairFn::swiglu) return {half(out[0])};
  if (fn == PairFn::swiglu_backward) return {{in[0], out[0]}, half(in[1]), half(out[1])};
  return {{in[0], out[0]}};
}

TileDemands PairMap::demands() const {
  const std::int64_t apart = distance > 1 ? distance : 0;
  if (head > 0) return {.column_group = head, .column_run = std::gcd(head, distance),
                        .other_columns = true};
  return {.column_group = 2 * distance, .column_run = apart, .pair_distance = apart};
}

bool PairMap::check(ShapeCheck& check) const {
  const std::size_t ins = rotates() ? 3 : fn == PairFn::swiglu ? 1 : 2;
  const std::size_t outs = fn == PairFn::swiglu_backward ? 2 : 1;
  if (in.size() != ins || out.size() != outs) {
    check.problem("a pair map of the wrong number of values");
    return false;
  }
  std::vector<ValueShape> shapes;
  for (const Value v : in) {
    const ValueShape* s = check.use(v);
    if (s == nullptr) return false;
    shapes.push_back(*s);
  }
  const std::int64_t width = shapes[0].width;
  if (shapes[0].form != Form::tile) check.problem("a pair map needs a tile");
  if (width % 2 != 0)
    check.problem("pairs of " + std::to_string(width) + " columns: the width is odd");
  if (head > 0 && (!rotates() || distance == 1 || 2 * distance > head || width % head != 0))
    check.problem("pairs in the first columns of every " + std::to_string(head));
  if (distance < 1 || (distance > 1 && head == 0 && width % (2 * distance) != 0))
    check.problem("pairs " + std::to_string(distance) + " columns apart do not fill " +
                  std::to_string(width) + " columns");
  if (!check.space().tiles_of_pairs && !check.in_prologue()) {
    if (distance != 1)
      check.problem("the pairs are " + std::to_string(distance) +
                    " columns apart, not adjacent: a GEMM tile does not hold both");
    else if (!check.space().interleaved)
      check.problem("adjacent columns are no pairs: the weight's rows are not interleaved");
  }
  if (rotates()) {
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      if (shapes[i].form != Form::table || width % shapes[i].width != 0)
        check.problem("a rotation needs tables whose width divides " + std::to_string(width));
  } else if (fn == PairFn::swiglu_backward &&
             (shapes[1].form != Form::tile || shapes[1].width * 2 != width)) {
    check.problem("the gradient of a pair's result must be half as wide as the pairs");
  }
  return true;
}

CodeLine PairMap::text(const ProgramNames& names) const {
  std::string to;
  for (const Value v : out) to += (to.empty() ? "" : ", ") + names.name(v);
  std::string from = names.name(in.at(0)) + " pairs";
  for (std::size_t i = 1; i < in.size(); ++i) from += ", " + names.name(in[i]);
  std::string comment =
      distance == 1 ? "adjacent columns" : fmt::format("columns {} apart", distance);
  if (head > 0) comment += fmt::format(" in the first {} of every {}", 2 * distance, head);
  if (!rotates()) comment += " (gate, up)";
  return {fmt::format("{} = {}({})", to, function_of(fn), from), comment};
}

void PairMap::evaluate(TileContext& tile) const {
  Matrix& x = tile.value(in[0]);
  if (tile.fault() == EvaluationFault::swaps_pairs)
    swap_pairs(x, distance, head > 0 ? head : 2 * distance);
  Matrix& to = tile.result(out[0]);
  switch (fn) {
    case PairFn::rope:
    case PairFn::rope_inverse: {
      const bool wrong = tile.fault() == EvaluationFault::wrong_sign;
      Matrix turned_cos, turned_sin;
      return apply_rope(x, tile.operand(in[1], out[0], turned_cos),
                        tile.operand(in[2], out[0], turned_sin), distance,
                        head > 0 ? head : 2 * distance, (fn == PairFn::rope_inverse) != wrong, to);
    }
    case PairFn::swiglu:
      return apply_swiglu(x, distance, to);
    case PairFn::swiglu_backward:
      return apply_swiglu_backward(x, tile.value(in[1]), distance, to, tile.result(out[1]));
  }
}

void PairMap::epilogue(EpilogueCode& code) const {
  FUSELINE_ASSERT(distance == 1, "a GEMM tile has adjacent pairs only");
  std::string arguments;
  for (const Value v : in) arguments += (arguments.empty() ? "" : ", ") + code.use(v);
  const std::string call = fmt::format("{}({})", function_of(fn), arguments);
  if (fn != PairFn::swiglu_backward) return code.define(out.at(0), call);
  const std::string both = code.variable("gradient", call);
  code.name(out.at(0), both + ".pairs");
  code.name(out.at(1), both + ".again");
}

void PairMap::stream(StreamCode& code) const {
  if (rotates()) return rotate(code);
  FUSELINE_ASSERT(distance == 1, "gate and up are adjacent columns");
  const std::string pairs = code.use(in.at(0));
  if (fn == PairFn::swiglu) {
    code.define(out.at(0), fmt::format("swiglu({})", pairs));
    return code.step("swiglu");
  }
  const std::string d = code.use(in.at(1));
  code.step("swiglu_backward");
  const std::string both = code.unique("gradient");
  code.line(fmt::format("const auto {} = swiglu_backward({}, {});", both, pairs, d));
  code.name(out.at(0), both + ".pairs");
  code.name(out.at(1), both + ".again");
}

}  // namespace fuseline
