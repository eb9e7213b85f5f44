#include "model/primitives/map.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "model/primitives/all_maps.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/known_functions.h"
#include "model/programs/meaning.h"

namespace fuseline {

namespace {

std::size_t operands(MapFn fn) { return static_cast<std::size_t>(fn->maths.value.operands); }

bool takes_constant(MapFn fn) { return fn->maths.value.constant; }

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
  const std::size_t arity = operands(fn);
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
        fmt::format(fmt::runtime(both.problem), ShapeCheck::text(out), both.wide, both.other),
        "two-layouts");
  return true;
}

CodeLine Map::text(const ProgramNames& names) const {
  std::string text = fmt::format("{}({{}})", fn->name.value);
  if (fn->text != nullptr) text = fn->text;
  const std::string first = names.name(in.at(0));
  std::string second;
  if (in.size() == 2) second = names.name(in[1]);
  if (takes_constant(fn)) second = fmt::format("{:.6g}", constant);
  return {names.name(out) + " = " + fmt::format(fmt::runtime(text), first, second)};
}

void Map::evaluate(TileContext& tile) const {
  Matrix turned_a, turned_b;
  const Matrix& a = tile.operand(in[0], out, turned_a);
  const Matrix* b = in.size() > 1 ? &tile.operand(in[1], out, turned_b) : nullptr;
  Matrix& to = tile.result(out);
  switch (tile.fault()) {
    case EvaluationFault::forgets_second:
    case EvaluationFault::wrong_sign:
      return maps::copy.maths.value.apply({.a = a, .out = to});
    case EvaluationFault::forgets_first:
      return maps::copy.maths.value.apply({.a = *b, .out = to});
    default:
      return fn->maths.value.apply(
          {.a = a, .b = b, .constant = static_cast<float>(constant), .out = to});
  }
}

void Map::epilogue(EpilogueCode& code) const {
  if (fn->device != nullptr) code.device_function(fn->device);
  std::string arguments;
  for (const Value v : in) arguments += (arguments.empty() ? "" : ", ") + code.use(v);
  if (takes_constant(fn)) arguments += fmt::format(", {:#.9g}F", constant);
  code.define(out, fmt::format("{}({})", fn->name.value, arguments));
}

void Map::stream(StreamCode& code) const {
  if (fn->device != nullptr) code.device_function(fn->device);
  std::string arguments;
  for (const Value v : in) arguments += (arguments.empty() ? "" : ", ") + code.use(v);
  if (takes_constant(fn)) arguments += ", p." + code.constant(out, constant);
  code.step(fn->step != nullptr ? fn->step : fn->name.value);
  code.define(out, fmt::format("{}({})", fn->name.value, arguments));
}

namespace {

void syntax(Map& p, Syntax& line) {
  line.makes(p.out);
  const std::string values = operands(p.fn) == 1 && !takes_constant(p.fn) ? "{}" : "{}, {}";
  const std::string call = fmt::format("{}({})", p.fn->name.value, values);
  line.pattern(p.fn->text != nullptr ? std::string_view(p.fn->text) : call, p.in,
               takes_constant(p.fn) ? &p.constant : nullptr);
}

void meaning(const Map& p, Meaning& exact) {
  const ValueFunction& f = meaning_of(p.fn);
  const ExactMatrix a = exact.value(p.in[0]);
  const ExactMatrix b = p.in.size() > 1 ? exact.value(p.in[1]) : a;
  exact.fill(p.out, std::max(a.rows, b.rows), std::max(a.cols, b.cols), [&](auto r, auto c) {
    const double of[] = {a.repeated(r, c), b.repeated(r, c), p.constant};
    if (!exact.rounds()) return f(of);
    const float single[] = {static_cast<float>(of[0]), static_cast<float>(of[1]),
                            static_cast<float>(of[2])};
    return static_cast<double>(f.in_fp32(single));
  });
}

void adjoint(const Map& p, ProgramAdjoint& back) {
  const auto d = back.of(p.out);
  if (!d) return;
  for (std::size_t i = 0; i < p.in.size(); ++i)
    back.add(p.in[i], back.times_derivative(Primitive(p), i, *d), p.out);
}

}  // namespace

void lines::map(LineForms& forms) {
  forms.of<Map>(syntax, meaning, adjoint);
  for (const MapFn fn : map_functions()) {
    const std::size_t count = operands(fn);
    const std::string values = count == 1 && !takes_constant(fn) ? "{}" : "{}, {}";
    forms.pattern(fn->text != nullptr ? fn->text : fmt::format("{}({})", fn->name.value, values),
                  Map{.out = 0, .fn = fn, .in = std::vector<Value>(count)});
  }
}

}  // namespace fuseline
