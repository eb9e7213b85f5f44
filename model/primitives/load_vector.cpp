#include "model/primitives/load_vector.h"

#include <fmt/format.h>

#include <string>

#include "model/primitives/all_reductions.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/store_vector.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/primitives/tile_reduce.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadVector::uses() const { return {}; }

std::vector<Value> LoadVector::defines() const { return {out}; }

std::vector<Access> LoadVector::accesses() const {
  const bool rows = axis == Axis::rows;
  return {{.operand = from, .reach = rows ? Reach::row_numbers : Reach::col_numbers}};
}

std::vector<ValueShape> LoadVector::results(const ValueShapes&, std::int64_t) const {
  if (axis == Axis::rows) return {{Form::per_row, 1}};
  return {{Form::per_col, from.cols}};
}

std::vector<ColumnRelation> LoadVector::relations() const { return {}; }

TileDemands LoadVector::demands() const { return {}; }

bool LoadVector::check(ShapeCheck& check) const {
  if (axis == Axis::rows && check.lies_flat(from)) return true;
  if (axis == Axis::rows)
    check.expect(from, check.space().rows, 1, "vector along rows");
  else if (from.rows != 1)
    check.expect(from, 1, from.cols, "vector along columns");
  return true;
}

CodeLine LoadVector::text(const ProgramNames& names) const {
  const bool rows = axis == Axis::rows;
  return {fmt::format("{} = {} {}", names.name(out), rows ? "load_rows" : "load_cols",
                      names.text(from)),
          rows ? "one per row" : "one per column"};
}

void LoadVector::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  if (axis == Axis::cols) {
    tile.memory().load(from, 0, tile.columns(out).begin, m.cols, m.row(0));
    return;
  }
  const TileArea& area = tile.area();
  const std::int64_t first = area.batch_index * area.height + area.row_begin;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    if (from.rows == 1)
      tile.memory().load(from, 0, first + r, 1, m.row(r));
    else
      tile.memory().load(from, first + r, 0, 1, m.row(r));
  }
}

void LoadVector::epilogue(EpilogueCode& code) const { code.load(out, accesses().front()); }

void LoadVector::stream(StreamCode& code) const {
  const bool rows = axis == Axis::rows;
  const std::string f = code.parameter(out, rows ? "row" : "col", accesses().front());
  code.define(out, f,
              rows ? fmt::format("load_rows(p.{}, {})", f, code.scope_place())
                   : fmt::format("load_cols(p.{}, {})", f, code.place_of(out)));
}

namespace {

void syntax(LoadVector& p, Syntax& line) {
  const bool rows = p.axis == Axis::rows;
  line.makes(p.out);
  line.word(rows ? "load_rows" : "load_cols");
  line.operand(p.from);
  line.remark(rows ? "one per row" : "one per column");
}

void meaning(const LoadVector& p, Meaning& exact) {
  if (p.axis == Axis::cols)
    return exact.fill(p.out, 1, p.from.cols,
                      [&](auto, auto c) { return exact.read(p.from, 0, c); });
  const bool lies_flat = p.from.rows == 1;
  exact.fill(p.out, exact.rows(), 1, [&](auto r, auto) {
    return lies_flat ? exact.read(p.from, 0, r) : exact.read(p.from, r, 0);
  });
}

void adjoint(const LoadVector& p, ProgramAdjoint& back) {
  const auto d = back.of(p.out);
  bool add = false;
  const auto to = d ? back.homes().of_loaded(p.from, add) : std::nullopt;
  if (!to) return;
  if (add) back.missing("a vector that several programs load");
  if (back.shape(*d).form != Form::tile) {
    back.emit(StoreVector{.in = *d, .to = *to, .axis = p.axis});
    return;
  }
  // What a tile has of the sum goes to memory, and a program of its own sums that up.
  const std::int64_t rows = back.rows();
  const std::int64_t length = p.axis == Axis::rows ? back.shape(*d).width : rows;
  const std::int64_t lines = p.axis == Axis::rows ? rows : back.shape(*d).width;
  back.emit(
      TileReduce{.fn = reductions::sum,
                 .axis = p.axis,
                 .in = *d,
                 .partial = back.homes().partials_of(*to, lines, ceil_div(length, partial_tile))});
}

}  // namespace

void lines::load_vector(LineForms& forms) {
  forms.of<LoadVector>(syntax, meaning, adjoint);
  forms.makes("load_rows", LoadVector{.out = 0, .from = {}, .axis = Axis::rows});
  forms.makes("load_cols", LoadVector{.out = 0, .from = {}, .axis = Axis::cols});
}

}  // namespace fuseline
