#include "model/primitives/load_shared.h"

#include <fmt/format.h>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadShared::uses() const { return {}; }

std::vector<Value> LoadShared::defines() const { return {out}; }

// A tile loads all columns of its rows, whichever heads it holds.
std::vector<Access> LoadShared::accesses() const {
  return {{.operand = from, .reach = Reach::row_numbers}};
}

std::vector<ValueShape> LoadShared::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols * times}};
}

std::vector<ColumnRelation> LoadShared::relations() const { return {}; }

TileDemands LoadShared::demands() const { return {.other_columns = true}; }

bool LoadShared::check(ShapeCheck& check) const {
  check.expect(from, check.space().rows, from.cols, "shared columns");
  if (times < 1) check.problem(fmt::format("columns {} times", times));
  return true;
}

CodeLine LoadShared::text(const ProgramNames& names) const {
  return {fmt::format("{} = load_shared {}", names.name(out), names.text(from)),
          fmt::format("{} times side by side", times)};
}

void LoadShared::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const std::int64_t begin = tile.columns(out).begin;
  std::vector<float> row(static_cast<std::size_t>(from.cols));
  for (std::int64_t r = 0; r < m.rows; ++r) {
    tile.memory().load(from, tile.area().row_begin + r, 0, from.cols, row.data());
    for (std::int64_t c = 0; c < m.cols; ++c)
      m.row(r)[c] = row[static_cast<std::size_t>((begin + c) % from.cols)];
  }
}

void LoadShared::epilogue(EpilogueCode& code) const { code.refuse(name); }

void LoadShared::stream(StreamCode& code) const {
  code.step("load_shared");
  const std::string f = code.parameter(out, "in", accesses().front());
  code.define(out, fmt::format("load_repeated<{}>(p.{}, {})", from.cols, f, code.place_of(out)));
}

namespace {

void syntax(LoadShared& p, Syntax& line) {
  line.makes(p.out);
  line.word("load_shared");
  line.operand(p.from);
  line.number("times", p.times);
  line.remark("side by side");
}

void meaning(const LoadShared& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.from.cols * p.times,
             [&](auto r, auto c) { return exact.read(p.from, r, c % p.from.cols); });
}

}  // namespace

void lines::load_shared(LineForms& forms) {
  forms.of<LoadShared>(syntax, meaning);
  forms.makes("load_shared", LoadShared{});
}

}  // namespace fuseline
