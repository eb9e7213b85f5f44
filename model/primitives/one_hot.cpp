#include "model/primitives/one_hot.h"

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

std::vector<Value> OneHot::uses() const { return {}; }

std::vector<Value> OneHot::defines() const { return {out}; }

std::vector<Access> OneHot::accesses() const {
  return {{.operand = ids, .reach = Reach::row_numbers, .names = cols}};
}

std::vector<ValueShape> OneHot::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, cols}};
}

std::vector<ColumnRelation> OneHot::relations() const { return {}; }

TileDemands OneHot::demands() const { return {}; }

bool OneHot::check(ShapeCheck& check) const {
  check.expect(ids, check.space().rows, 1, "column ids");
  return true;
}

CodeLine OneHot::text(const ProgramNames& names) const {
  return {fmt::format("{} = one_hot {}", names.name(out), names.text(ids)),
          fmt::format("1 in its column of {}", cols)};
}

void OneHot::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  std::fill(m.data.begin(), m.data.end(), 0.0F);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    float id = 0;
    tile.memory().load(ids, tile.area().row_begin + r, 0, 1, &id);
    const std::int64_t place = static_cast<std::int64_t>(id) - range.begin;
    if (place >= 0 && place < m.cols) m.row(r)[place] = 1.0F;
  }
}

void OneHot::epilogue(EpilogueCode& code) const { code.refuse(name); }

void OneHot::stream(StreamCode& code) const {
  code.step("one_hot");
  const std::string f = code.parameter(out, "ids", accesses().front());
  code.define(out, fmt::format("one_hot(p.{}, {})", f, code.here()));
}

namespace {

void syntax(OneHot& p, Syntax& line) {
  line.makes(p.out);
  line.word("one_hot");
  line.operand(p.ids);
  line.number("columns", p.cols);
  line.remark("1 in its column");
}

void meaning(const OneHot& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.cols,
             [&](auto r, auto c) { return exact.number(p.ids, r, 0) == c ? 1.0 : 0.0; });
}

}  // namespace

void lines::one_hot(LineForms& forms) {
  forms.of<OneHot>(syntax, meaning);
  forms.makes("one_hot", OneHot{});
}

}  // namespace fuseline
