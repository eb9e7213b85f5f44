#include "model/primitives/load_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadTable::uses() const { return {}; }

std::vector<Value> LoadTable::defines() const { return {out}; }

std::vector<Access> LoadTable::accesses() const {
  return {{.operand = from, .reach = Reach::table, .period = period, .rest = rest}};
}

std::vector<ValueShape> LoadTable::results(const ValueShapes&, std::int64_t) const {
  return {{Form::table, width()}};
}

std::vector<ColumnRelation> LoadTable::relations() const { return {}; }

// Columns that the table has lie together in every period.
TileDemands LoadTable::demands() const {
  return {.column_run = period > 0 ? std::gcd(period, from.cols) : 0};
}

bool LoadTable::check(ShapeCheck& check) const {
  if (check.space().rows % from.rows != 0)
    check.problem("table " + check.name(from) + " of " + std::to_string(from.rows) +
                  " rows does not divide " + std::to_string(check.space().rows) + " rows");
  if (width() < from.cols)
    check.problem("table " + check.name(from) + " of " + std::to_string(from.cols) +
                  " columns begins again after " + std::to_string(period));
  return true;
}

CodeLine LoadTable::text(const ProgramNames& names) const {
  return {fmt::format("{} = load_table {}", names.name(out), names.text(from)),
          period == 0 ? "row mod T, column mod d"
                      : fmt::format("row mod T, column mod {}; {:g} behind the first {}", period,
                                    rest, from.cols)};
}

void LoadTable::evaluate(TileContext& tile) const {
  // Of each row the columns that the tile's values meet, once.
  Matrix& m = tile.result(out);
  const std::int64_t d = tile.width(out);
  if (from.cols < d) std::fill(m.data.begin(), m.data.end(), static_cast<float>(rest));
  std::vector<char> met(static_cast<std::size_t>(d));
  for (const Value partner : tile.partners(out)) {
    const ColumnRange range = tile.columns(partner);
    for (std::int64_t c = range.begin; c < std::min(range.end, range.begin + d); ++c)
      if (c % d < from.cols) met[static_cast<std::size_t>(c % d)] = 1;
  }
  for (auto begin = met.begin(); (begin = std::find(begin, met.end(), 1)) != met.end();) {
    const auto end = std::find(begin, met.end(), 0);
    const std::int64_t first = begin - met.begin();
    const TileArea& area = tile.area();
    const std::int64_t row = area.batch_index * area.height + area.row_begin;
    for (std::int64_t r = 0; r < m.rows; ++r)
      tile.memory().load(from, (row + r) % from.rows, first, end - begin, m.row(r) + first);
    begin = end;
  }
}

void LoadTable::epilogue(EpilogueCode& code) const { code.load(out, accesses().front()); }

void LoadTable::stream(StreamCode& code) const {
  const std::string f = code.parameter(out, "table", accesses().front());
  const std::string part =
      period > 0 ? fmt::format("_part<{}>(p.{}, {}, {:#.9g}F)", period, f, code.here(), rest)
                 : fmt::format("(p.{}, {})", f, code.here());
  code.define(out, f, "load_table" + part);
}

namespace {

void syntax(LoadTable& p, Syntax& line) {
  line.makes(p.out);
  line.word("load_table");
  line.operand(p.from);
  line.number("period", p.period, 0);
  line.real("rest", p.rest, 0);
  line.remark(p.period == 0 ? "row mod T, column mod d"
                            : "row mod T, column mod period, then rest");
}

void meaning(const LoadTable& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.width(), [&](auto r, auto c) {
    return c < p.from.cols ? exact.read(p.from, r % p.from.rows, c) : p.rest;
  });
}

void adjoint(const LoadTable& p, ProgramAdjoint& back) {
  bool add = false;
  if (back.of(p.out) && back.homes().of_loaded(p.from, add)) back.missing("a table");
}

}  // namespace

void lines::load_table(LineForms& forms) {
  forms.of<LoadTable>(syntax, meaning, adjoint);
  forms.makes("load_table", LoadTable{});
}

}  // namespace fuseline
