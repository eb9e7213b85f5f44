#include "model/primitives/numbers_at.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> NumbersAt::uses() const { return {}; }

std::vector<Value> NumbersAt::defines() const { return {out}; }

std::vector<Access> NumbersAt::accesses() const {
  return {{.operand = places, .reach = Reach::row_numbers, .names = from.rows},
          {.operand = from, .reach = Reach::gathered_rows, .indices = places.rows}};
}

std::vector<ValueShape> NumbersAt::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, cols}};
}

std::vector<ColumnRelation> NumbersAt::relations() const { return {}; }

TileDemands NumbersAt::demands() const { return {.chain = {.loads = 1}}; }

bool NumbersAt::check(ShapeCheck& check) const {
  check.expect(places, check.space().rows * std::max<std::int64_t>(1, cols), 1, "places");
  if (from.cols != 1)
    check.problem(fmt::format("{} has {} columns, not 1", check.name(from), from.cols));
  return true;
}

CodeLine NumbersAt::text(const ProgramNames& names) const {
  return {fmt::format("{} = numbers_at {}", names.name(out), names.text(from)),
          "places " + names.text(places)};
}

void NumbersAt::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t c = 0; c < m.cols; ++c) {
      float id = 0;
      tile.memory().load(places, (tile.area().row_begin + r) * cols + range.begin + c, 0, 1, &id);
      tile.memory().load(from, static_cast<std::int64_t>(id), 0, 1, m.row(r) + c);
    }
}

void NumbersAt::epilogue(EpilogueCode& code) const { code.refuse(name); }

void NumbersAt::stream(StreamCode& code) const {
  code.step(name);
  const std::string at = code.parameter(out, "ids", accesses().front());
  const std::string numbers = code.parameter(out, "in", accesses().back());
  code.define(out,
              fmt::format("numbers_at<{}>(p.{}, p.{}, {})", cols, numbers, at, code.place_of(out)));
}

namespace {

void syntax(NumbersAt& p, Syntax& line) {
  line.makes(p.out);
  line.word("numbers_at");
  line.open();
  line.operand(p.from);
  line.operand(p.places);
  line.number("columns", p.cols);
  line.close();
  line.remark("that lie at their places");
}

void meaning(const NumbersAt& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.cols, [&](auto r, auto c) {
    return exact.read(p.from, exact.number(p.places, r * p.cols + c, 0), 0);
  });
}

}  // namespace

void lines::numbers_at(LineForms& forms) {
  forms.of<NumbersAt>(syntax, meaning);
  forms.makes("numbers_at", NumbersAt{});
}

}  // namespace fuseline
