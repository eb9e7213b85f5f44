#include "model/primitives/place_numbers.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> PlaceNumbers::uses() const { return {}; }

std::vector<Value> PlaceNumbers::defines() const { return {out}; }

std::vector<Access> PlaceNumbers::accesses() const {
  return {{.operand = ids, .reach = Reach::all_numbers, .names = from.rows},
          {.operand = from, .reach = Reach::summed_rows}};
}

std::vector<ValueShape> PlaceNumbers::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, cols}};
}

std::vector<ColumnRelation> PlaceNumbers::relations() const { return {}; }

TileDemands PlaceNumbers::demands() const {
  return {.other_columns = true, .chain = {.searches = ceil_div(from.rows, 32)}};
}

bool PlaceNumbers::check(ShapeCheck& check) const {
  if (!check.space().columns_resident)
    check.problem("numbers put at their places need a stream", "whole-column");
  check.expect(ids, from.rows, 1, "places");
  // Every place gets one number: the places are those of a permutation.
  if (from.cols != 1 || from.rows != check.space().rows * cols)
    check.problem(fmt::format("{} has {} numbers for {} places", check.name(from),
                              from.rows * from.cols, check.space().rows * cols));
  return true;
}

CodeLine PlaceNumbers::text(const ProgramNames& names) const {
  return {fmt::format("{} = place_numbers {}", names.name(out), names.text(from)),
          "where " + names.text(ids) + " is the place"};
}

void PlaceNumbers::evaluate(TileContext& tile) const {
  const TileArea& area = tile.area();
  const ColumnRange range = tile.columns(out);
  Matrix& m = tile.result(out);
  for (std::int64_t p = 0; p < from.rows; ++p) {
    float id = 0;
    tile.memory().load(ids, p, 0, 1, &id);
    const auto place = static_cast<std::int64_t>(id);
    const std::int64_t row = place / cols;
    const std::int64_t col = place % cols;
    if (row < area.row_begin || row >= area.row_end || col < range.begin || col >= range.end)
      continue;
    tile.memory().load(from, p, 0, 1, m.row(row - area.row_begin) + col - range.begin);
  }
}

void PlaceNumbers::epilogue(EpilogueCode& code) const { code.refuse(name); }

void PlaceNumbers::stream(StreamCode& code) const {
  code.step(name);
  code.not_in_rows("numbers put at their places");
  code.only_as_tile("numbers put at their places");
  const std::vector<Access> moved = accesses();
  const std::string places = code.parameter(out, "ids", moved[0]);
  const std::string numbers = code.parameter(out, "in", moved[1]);
  code.define(out, fmt::format("place_numbers<{}>(p.{}, p.{}, place)", cols, numbers, places));
}

namespace {

void syntax(PlaceNumbers& p, Syntax& line) {
  line.makes(p.out);
  line.word("place_numbers");
  line.open();
  line.operand(p.from);
  line.operand(p.ids);
  line.number("columns", p.cols);
  line.close();
  line.remark("at their places");
}

void meaning(const PlaceNumbers& p, Meaning& exact) {
  ExactMatrix& placed = exact.make(p.out, exact.rows(), p.cols);
  for (std::int64_t i = 0; i < p.from.rows; ++i) {
    const std::int64_t place = exact.number(p.ids, i, 0);
    if (place >= 0 && place < placed.rows * p.cols)
      placed.at(place / p.cols, place % p.cols) = exact.read(p.from, i, 0);
  }
}

}  // namespace

void lines::place_numbers(LineForms& forms) {
  forms.of<PlaceNumbers>(syntax, meaning);
  forms.makes("place_numbers", PlaceNumbers{});
}

}  // namespace fuseline
