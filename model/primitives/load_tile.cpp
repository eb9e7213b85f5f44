#include "model/primitives/load_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/store_tile.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadTile::uses() const { return {}; }

std::vector<Value> LoadTile::defines() const { return {out}; }

std::vector<Access> LoadTile::accesses() const { return {{.operand = from, .reach = Reach::tile}}; }

std::vector<ValueShape> LoadTile::results(const ValueShapes&, std::int64_t heads) const {
  return {{Form::tile, from.cols / std::max<std::int64_t>(1, heads)}};
}

std::vector<ColumnRelation> LoadTile::relations() const { return {}; }

TileDemands LoadTile::demands() const { return {}; }

bool LoadTile::check(ShapeCheck& check) const {
  if (check.space().batch > 1) check.problem("a batched GEMM loads no tiles");
  if (check.in_prologue()) return true;
  const std::int64_t heads = check.space().heads;
  const std::int64_t cols = heads > 1 ? from.cols / heads : from.cols;
  if (!check.width_known(cols))
    check.problem("tile " + check.name(from) + " is " + std::to_string(from.cols) +
                  " columns wide, the index space " + std::to_string(check.space().cols));
  check.tile_operand(from, cols);
  return true;
}

CodeLine LoadTile::text(const ProgramNames& names) const {
  return {fmt::format("{} = load {}", names.name(out), names.text(from))};
}

void LoadTile::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const Corner at = tile.place(from, tile.width(out), r);
    tile.memory().load(from, at.row, at.col + range.begin, m.cols, m.row(r));
  }
}

void LoadTile::epilogue(EpilogueCode& code) const { code.load(out, accesses().front()); }

void LoadTile::stream(StreamCode& code) const {
  const std::string f = code.parameter(out, "in", accesses().front());
  const int each = code.each(out);
  code.define(out, f,
              fmt::format("load_tile{}(p.{}, {})", each == 8 ? "" : fmt::format("<{}>", each), f,
                          code.here()));
}

namespace {

void syntax(LoadTile& p, Syntax& line) {
  line.makes(p.out);
  line.word("load");
  line.operand(p.from);
}

void meaning(const LoadTile& p, Meaning& exact) {
  const std::int64_t cols = p.from.cols / exact.heads();
  ExactMatrix& m = exact.make(p.out, exact.rows(), cols);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const Corner at = exact.place(p.from, cols, r);
    for (std::int64_t c = 0; c < cols; ++c) m.at(r, c) = exact.read(p.from, at.row, at.col + c);
  }
}

void adjoint(const LoadTile& p, ProgramAdjoint& back) {
  const auto d = back.of(p.out);
  bool add = false;
  const auto to = d ? back.homes().of_loaded(p.from, add) : std::nullopt;
  if (!to) return;
  if (back.shape(*d).form == Form::per_col)
    back.missing("the same gradient for all rows of a tile");
  back.emit(StoreTile{.in = *d, .to = *to, .accumulate = add});
}

}  // namespace

void lines::load_tile(LineForms& forms) {
  forms.of<LoadTile>(syntax, meaning, adjoint);
  forms.makes("load", LoadTile{});
}

}  // namespace fuseline
