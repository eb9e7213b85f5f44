#include "model/primitives/gather_number.h"

#include <fmt/format.h>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> GatherNumber::uses() const { return {}; }

std::vector<Value> GatherNumber::defines() const { return {out}; }

// A number of `from` for every row, as a vector along the rows has one.
std::vector<Access> GatherNumber::accesses() const {
  return {{.operand = ids, .reach = Reach::row_numbers, .names = from.rows * from.cols},
          {.operand = from, .reach = Reach::row_numbers}};
}

std::vector<ValueShape> GatherNumber::results(const ValueShapes&, std::int64_t) const {
  return {{Form::per_row, 1}};
}

std::vector<ColumnRelation> GatherNumber::relations() const { return {}; }

TileDemands GatherNumber::demands() const { return {}; }

bool GatherNumber::check(ShapeCheck& check) const {
  check.expect(ids, check.space().rows, 1, "places");
  // Each number goes to one row: the places are those of a permutation.
  if (from.rows * from.cols != check.space().rows)
    check.problem(fmt::format("{} has {} numbers for {} rows", check.name(from),
                              from.rows * from.cols, check.space().rows));
  return true;
}

CodeLine GatherNumber::text(const ProgramNames& names) const {
  return {fmt::format("{} = gather_number {}", names.name(out), names.text(from)),
          "places " + names.text(ids)};
}

void GatherNumber::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    float id = 0;
    tile.memory().load(ids, tile.area().row_begin + r, 0, 1, &id);
    const auto place = static_cast<std::int64_t>(id);
    tile.memory().load(from, place / from.cols, place % from.cols, 1, m.row(r));
  }
}

void GatherNumber::epilogue(EpilogueCode& code) const {
  const std::string numbers = code.parameter(accesses().back());
  const std::string places = code.parameter(accesses().front());
  code.row_vector(out,
                  fmt::format("load_numbers<{}>(p.{}, p.{}, place)", from.cols, numbers, places));
}

void GatherNumber::stream(StreamCode& code) const {
  code.step("gather_number");
  const std::string numbers = code.parameter("row", accesses().back());
  const std::string places = code.parameter(out, "ids", accesses().front());
  code.define(out, fmt::format("load_numbers<{}>(p.{}, p.{}, {})", from.cols, numbers, places,
                               code.scope_place()));
}

namespace {

void syntax(GatherNumber& p, Syntax& line) {
  line.makes(p.out);
  line.word("gather_number");
  line.open();
  line.operand(p.from);
  line.operand(p.ids);
  line.close();
  line.remark("by their places");
}

void meaning(const GatherNumber& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), 1, [&](auto r, auto) {
    const std::int64_t place = exact.number(p.ids, r, 0);
    return exact.read(p.from, place / p.from.cols, place % p.from.cols);
  });
}

}  // namespace

void lines::gather_number(LineForms& forms) {
  forms.of<GatherNumber>(syntax, meaning);
  forms.makes("gather_number", GatherNumber{});
}

}  // namespace fuseline
