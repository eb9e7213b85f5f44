#include "model/primitives/load_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadPart::uses() const { return {}; }

std::vector<Value> LoadPart::defines() const { return {out}; }

std::vector<Access> LoadPart::accesses() const {
  return {{.operand = from, .reach = Reach::part_columns, .part = part}};
}

std::vector<ValueShape> LoadPart::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, part.cols(from.cols)}};
}

std::vector<ColumnRelation> LoadPart::relations() const { return {}; }

// Runs that begin and end at multiples of it; columns with gaps between them move one by one.
TileDemands LoadPart::demands() const {
  const std::int64_t run = std::gcd(std::gcd(part.group, part.begin), part.count);
  return {.column_run = part.step > 1 ? 1 : run, .other_columns = true};
}

bool LoadPart::check(ShapeCheck& check) const {
  if (!check.space().tiles_of_pairs)
    check.problem("parts of " + check.name(from) + " are not in one tile", "pair-across-tiles");
  if (!part.fits(from.cols)) {
    check.problem(fmt::format("columns {}, {}, ... ({} of them) of every {} columns of {}",
                              part.begin, part.begin + part.step, part.count, part.group,
                              check.name(from)));
    return false;
  }
  if (from.rows != check.space().rows) check.expect(from, check.space().rows, from.cols, "tile");
  return true;
}

CodeLine LoadPart::text(const ProgramNames& names) const {
  return {fmt::format("{} = load_part {}", names.name(out), names.text(from)),
          fmt::format("{} columns from {}{} of every {}", part.count, part.begin,
                      part.step == 1 ? "" : fmt::format(" in steps of {}", part.step), part.group)};
}

void LoadPart::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t j = range.begin; j < range.end;) {
      const std::int64_t run =
          part.step > 1 ? 1 : std::min(range.end - j, part.count - j % part.count);
      tile.memory().load(from, tile.area().row_begin + r, part.column(j), run,
                         m.row(r) + j - range.begin);
      j += run;
    }
  }
}

void LoadPart::epilogue(EpilogueCode& code) const { code.refuse(name); }

void LoadPart::stream(StreamCode& code) const {
  const std::string f = code.parameter(out, "in", accesses().front());
  code.define(out, f,
              fmt::format("load_part<{}, {}, {}, {}>(p.{}, {})", part.group, part.begin, part.step,
                          part.count, f, code.place_of(out)));
}

namespace {

void syntax(LoadPart& p, Syntax& line) {
  line.makes(p.out);
  line.word("load_part");
  line.operand(p.from);
  line.number("group", p.part.group);
  line.number("begin", p.part.begin, 0);
  line.number("step", p.part.step, 1);
  line.number("count", p.part.count);
  line.remark("columns of every group");
}

void meaning(const LoadPart& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.part.cols(p.from.cols),
             [&](auto r, auto c) { return exact.read(p.from, r, p.part.column(c)); });
}

}  // namespace

void lines::load_part(LineForms& forms) {
  forms.of<LoadPart>(syntax, meaning);
  forms.makes("load_part", LoadPart{});
}

}  // namespace fuseline
