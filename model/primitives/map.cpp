#include "model/primitives/map.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"

namespace fuseline {

namespace {

bool is_unary(MapFn fn) { return fn != MapFn::add && fn != MapFn::sub && fn != MapFn::mul; }

bool takes_constant(MapFn fn) {
  return fn == MapFn::scale_by_constant || fn == MapFn::add_constant;
}

const char* symbol_of(MapFn fn) {
  switch (fn) {
    case MapFn::add:
      return "+";
    case MapFn::sub:
      return "-";
    case MapFn::mul:
    case MapFn::scale_by_constant:
      return "*";
    case MapFn::add_constant:
      return "+";
    case MapFn::square:
      return "square";
    case MapFn::rsqrt:
      return "rsqrt";
    case MapFn::silu:
      return "silu";
    case MapFn::sigmoid:
      return "sigmoid";
    case MapFn::gelu_tanh:
      return "gelu";
    case MapFn::negate:
      return "-";
    case MapFn::copy:
      return "copy";
    case MapFn::exp:
      return "exp";
    case MapFn::reciprocal:
      return "1/";
    case MapFn::log:
      return "log";
    case MapFn::gelu_tanh_slope:
      return "gelu_slope";
  }
  FUSELINE_ASSERT(false, "unknown map");
}

// Of cuda/kernels: "add", "gelu_tanh".
const char* function_of(MapFn fn) {
  switch (fn) {
    case MapFn::add:
      return "add";
    case MapFn::sub:
      return "sub";
    case MapFn::mul:
      return "mul";
    case MapFn::scale_by_constant:
      return "scale_by_constant";
    case MapFn::add_constant:
      return "add_constant";
    case MapFn::square:
      return "square";
    case MapFn::rsqrt:
      return "rsqrt";
    case MapFn::silu:
      return "silu";
    case MapFn::sigmoid:
      return "sigmoid";
    case MapFn::gelu_tanh:
      return "gelu_tanh";
    case MapFn::negate:
      return "negate";
    case MapFn::copy:
      return "copy";
    case MapFn::exp:
      return "exp";
    case MapFn::reciprocal:
      return "reciprocal";
    case MapFn::log:
      return "log";
    case MapFn::gelu_tanh_slope:
      return "gelu_tanh_slope";
  }
  FUSELINE_ASSERT(false, "unknown map");
}

// The shape of what two operands give, and the words for two that do not fit.
struct Joined {
  ValueShape shape;
  const char* problem = nullptr;
  std::int64_t wide = 0, other = 0;
};

Joined joined(const ValueShape& a, const ValueShape& b) {
  if (b.form == Form::tile && a.form != Form::tile) return joined(b, a);
  if (a.form == Form::tile) {
    const bool fits = b.form == Form::per_row ||
                      (b.form == Form::table ? a.width % b.width == 0 : a.width == b.width);
    return {a, fits ? nullptr : "{}: widths {} and {} do not match", a.width, b.width};
  }
  if (a == b) return {a};
  if (a.form == Form::per_row && b.form == Form::per_col) return {{Form::tile, b.width}};
  if (b.form == Form::per_row && a.form == Form::per_col) return {{Form::tile, a.width}};
  return {a, "{}: operands do not broadcast to each other"};
}

}  // namespace

std::vector<Value> Map::uses() const { return in; }

std::vector<Value> Map::defines() const { return {out}; }

std::vector<Access> Map::accesses() const { return {}; }

std::vector<ValueShape> Map::results(const ValueShapes& made, std::int64_t) const {
  const ValueShape& first = shape_of(made, in.front());
  return {joined(first, in.size() > 1 ? shape_of(made, in[1]) : first).shape};
}

std::vector<ColumnRelation> Map::relations() const {
  std::vector<ColumnRelation> same;
  for (const Value v : in) same.push_back({v, out});
  return same;
}

TileDemands Map::demands() const { return {.elementwise = true}; }

bool Map::check(ShapeCheck& check) const {
  const std::size_t arity = is_unary(fn) ? 1 : 2;
  if (in.size() != arity) {
    check.problem(ShapeCheck::text(out) + ": a map of " + std::to_string(in.size()) +
                  " values, not " + std::to_string(arity));
    return false;
  }
  const ValueShape* a = check.use(in[0]);
  const ValueShape* b = arity == 2 ? check.use(in[1]) : a;
  if (a == nullptr || b == nullptr) return false;
  const Joined both = joined(*a, *b);
  if (both.problem != nullptr)
    check.problem(
        fmt::format(fmt::runtime(both.problem), ShapeCheck::text(out), both.wide, both.other));
  return true;
}

CodeLine Map::text(const ProgramNames& names) const {
  const char* symbol = symbol_of(fn);
  const std::string to = names.name(out);
  const std::string first = names.name(in.at(0));
  if (in.size() == 2) return {fmt::format("{} = {} {} {}", to, first, symbol, names.name(in[1]))};
  if (takes_constant(fn)) return {fmt::format("{} = {} {} {:.6g}", to, first, symbol, constant)};
  if (fn == MapFn::negate) return {fmt::format("{} = -{}", to, first)};
  if (fn == MapFn::reciprocal) return {fmt::format("{} = 1 / {}", to, first)};
  return {fmt::format("{} = {}({})", to, symbol, first)};
}

void Map::evaluate(TileContext& tile) const {
  Matrix turned_a, turned_b;
  const Matrix& a = tile.operand(in[0], out, turned_a);
  const Matrix* b = in.size() > 1 ? &tile.operand(in[1], out, turned_b) : nullptr;
  Matrix& to = tile.result(out);
  switch (tile.fault()) {
    case EvaluationFault::forgets_second:
    case EvaluationFault::wrong_sign:
      return apply_map(MapFn::copy, 0, a, nullptr, to);
    case EvaluationFault::forgets_first:
      return apply_map(MapFn::copy, 0, *b, nullptr, to);
    default:
      return apply_map(fn, static_cast<float>(constant), a, b, to);
  }
}

void Map::epilogue(EpilogueCode& code) const {
  std::string arguments;
  for (const Value v : in) arguments += (arguments.empty() ? "" : ", ") + code.use(v);
  if (takes_constant(fn)) arguments += fmt::format(", {:#.9g}F", constant);
  code.define(out, fmt::format("{}({})", function_of(fn), arguments));
}

void Map::stream(StreamCode& code) const {
  std::string arguments;
  for (const Value v : in) arguments += (arguments.empty() ? "" : ", ") + code.use(v);
  if (takes_constant(fn)) arguments += ", p." + code.constant(out, constant);
  code.step(fn == MapFn::scale_by_constant ? "scale"
            : fn == MapFn::add_constant    ? "shift"
                                           : function_of(fn));
  code.define(out, fmt::format("{}({})", function_of(fn), arguments));
}

}  // namespace fuseline
