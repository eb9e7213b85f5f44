#include "model/primitives/sum_places.h"

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

std::vector<Value> SumPlaces::uses() const { return {}; }

std::vector<Value> SumPlaces::defines() const { return {out}; }

// A tile takes the places of its rows, `each` of them a row, and as many rows of `from`.
std::vector<Access> SumPlaces::accesses() const {
  return {{.operand = places, .reach = Reach::row_numbers, .names = from.rows},
          {.operand = from, .reach = Reach::gathered_rows, .indices = places.rows}};
}

std::vector<ValueShape> SumPlaces::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols}};
}

std::vector<ColumnRelation> SumPlaces::relations() const { return {}; }

TileDemands SumPlaces::demands() const { return {.chain = {.loads = 1}}; }

bool SumPlaces::check(ShapeCheck& check) const {
  if (each < 1) check.problem(fmt::format("rows have {} places each", each));
  check.expect(places, check.space().rows * std::max<std::int64_t>(1, each), 1, "places");
  return true;
}

CodeLine SumPlaces::text(const ProgramNames& names) const {
  return {fmt::format("{} = sum_places {}", names.name(out), names.text(from)),
          fmt::format("{} rows for each, at {}", each, names.text(places))};
}

void SumPlaces::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  std::fill(m.data.begin(), m.data.end(), 0.0F);
  std::vector<float> row(static_cast<std::size_t>(m.cols));
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t j = 0; j < each; ++j) {
      float id = 0;
      tile.memory().load(places, (tile.area().row_begin + r) * each + j, 0, 1, &id);
      tile.memory().load(from, static_cast<std::int64_t>(id), range.begin, m.cols, row.data());
      for (std::int64_t c = 0; c < m.cols; ++c) m.row(r)[c] += row[static_cast<std::size_t>(c)];
    }
}

void SumPlaces::epilogue(EpilogueCode& code) const { code.refuse(name); }

void SumPlaces::stream(StreamCode& code) const {
  code.step(name);
  const std::string at = code.parameter(out, "ids", accesses().front());
  const std::string rows = code.parameter(out, "in", accesses().back());
  code.define(out, fmt::format("sum_places<{}>(p.{}, p.{}, {})", each, rows, at, code.here()));
}

namespace {

void syntax(SumPlaces& p, Syntax& line) {
  line.makes(p.out);
  line.word("sum_places");
  line.open();
  line.operand(p.from);
  line.operand(p.places);
  line.number("each", p.each, 1);
  line.close();
  line.remark("of rows at their places");
}

void meaning(const SumPlaces& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.from.cols, [&](auto r, auto c) {
    double sum = 0;
    for (std::int64_t j = 0; j < p.each; ++j)
      sum += exact.read(p.from, exact.number(p.places, r * p.each + j, 0), c);
    return sum;
  });
}

}  // namespace

void lines::sum_places(LineForms& forms) {
  forms.of<SumPlaces>(syntax, meaning);
  forms.makes("sum_places", SumPlaces{});
}

}  // namespace fuseline
