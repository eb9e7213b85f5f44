#include "model/primitives/load_halves.h"

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

std::vector<Value> LoadHalves::uses() const { return {}; }

std::vector<Value> LoadHalves::defines() const { return {out}; }

std::vector<Access> LoadHalves::accesses() const {
  const std::int64_t half = group / 2;
  return {{.operand = from,
           .reach = Reach::part_columns,
           .part = {.group = group, .begin = upper ? half : 0, .count = half}}};
}

std::vector<ValueShape> LoadHalves::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols / 2}};
}

std::vector<ColumnRelation> LoadHalves::relations() const { return {}; }

TileDemands LoadHalves::demands() const { return {.column_run = group / 2, .other_columns = true}; }

bool LoadHalves::check(ShapeCheck& check) const {
  if (!check.space().tiles_of_pairs)
    check.problem("halves of " + check.name(from) + " are not in one tile", "pair-across-tiles");
  if (group < 2 || group % 2 != 0 || from.cols % group != 0)
    check.problem("halves of groups of " + std::to_string(group) + " columns of " +
                  check.name(from));
  if (from.rows != check.space().rows) check.expect(from, check.space().rows, from.cols, "tile");
  return true;
}

CodeLine LoadHalves::text(const ProgramNames& names) const {
  return {fmt::format("{} = load_halves {}", names.name(out), names.text(from)),
          fmt::format("{} half of every {} columns", upper ? "upper" : "lower", group)};
}

void LoadHalves::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  const std::int64_t half = group / 2;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t j = range.begin; j < range.end;) {
      const std::int64_t run = std::min(range.end - j, half - j % half);
      const std::int64_t column = j / half * group + (upper ? half : 0) + j % half;
      tile.memory().load(from, tile.area().row_begin + r, column, run, m.row(r) + j - range.begin);
      j += run;
    }
  }
}

void LoadHalves::epilogue(EpilogueCode& code) const { code.refuse(name); }

void LoadHalves::stream(StreamCode& code) const {
  const std::string f = code.parameter(out, "in", accesses().front());
  code.define(out, f,
              fmt::format("load_halves<{}, {}>(p.{}, {})", group, upper, f, code.place_of(out)));
}

namespace {

void syntax(LoadHalves& p, Syntax& line) {
  line.makes(p.out);
  line.word(p.upper ? "load_upper" : "load_lower");
  line.operand(p.from);
  line.number("group", p.group);
  line.remark("half of every group of columns");
}

void meaning(const LoadHalves& p, Meaning& exact) {
  const std::int64_t half = p.group / 2;
  exact.fill(p.out, exact.rows(), p.from.cols / 2, [&](auto r, auto c) {
    return exact.read(p.from, r, c / half * p.group + (p.upper ? half : 0) + c % half);
  });
}

}  // namespace

void lines::load_halves(LineForms& forms) {
  forms.of<LoadHalves>(syntax, meaning);
  forms.makes("load_lower", LoadHalves{});
  forms.makes("load_upper", LoadHalves{.out = 0, .from = {}, .upper = true});
}

}  // namespace fuseline
