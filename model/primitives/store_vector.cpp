#include "model/primitives/store_vector.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/load_vector.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> StoreVector::uses() const { return {in}; }

std::vector<Value> StoreVector::defines() const { return {}; }

std::vector<Access> StoreVector::accesses() const {
  const bool rows = axis == Axis::rows;
  return {{.operand = to, .reach = rows ? Reach::row_numbers : Reach::col_numbers, .store = true}};
}

std::vector<ValueShape> StoreVector::results(const ValueShapes&, std::int64_t) const { return {}; }

std::vector<ColumnRelation> StoreVector::relations() const { return {}; }

TileDemands StoreVector::demands() const { return {}; }

bool StoreVector::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  const std::int64_t rows = check.space().rows;
  const bool by_row = s->form == Form::per_row || s->form == Form::per_score_row;
  if (axis == Axis::rows ? !by_row : s->form != Form::per_col)
    check.problem("what is stored to " + check.name(to) + " is no vector along " +
                  (axis == Axis::rows ? "rows" : "columns"));
  if (s->form == Form::per_score_row) {
    check.expect(to, check.score_rows(), 1, "vector along the rows of scores");
  } else if (axis == Axis::rows && check.lies_flat(to)) {
    // a column result that the finisher found row by row
  } else if (axis == Axis::rows) {
    check.expect(to, rows, 1, "vector along rows");
  } else {
    check.expect(to, 1, s->width, "vector along columns");
  }
  check.stored(to);
  return true;
}

CodeLine StoreVector::text(const ProgramNames& names) const {
  return {fmt::format("{} {} = {}", axis == Axis::rows ? "store_rows" : "store_cols",
                      names.text(to), names.name(in))};
}

void StoreVector::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  if (axis == Axis::cols) {
    tile.memory().store(to, 0, tile.columns(in).begin, x.cols, x.row(0));
    return;
  }
  const TileArea& area = tile.area();
  const std::int64_t first = area.vector_begin >= 0 ? area.vector_begin : area.row_begin;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    if (to.rows == 1)
      tile.memory().store(to, 0, first + r, 1, x.row(r));
    else
      tile.memory().store(to, first + r, 0, 1, x.row(r));
  }
}

void StoreVector::epilogue(EpilogueCode& code) const {
  const std::string x = code.use(in);
  if (axis != Axis::rows || code.form(in) != Form::per_row)
    code.refuse("a vector along columns that is stored");
  const std::string f = code.parameter(accesses().front());
  code.line(fmt::format("if (slab.col == 0) store_rows(p.{}, {}, {});", f, code.place(), x));
}

void StoreVector::stream(StreamCode& code) const {
  code.where_stored(in, false, [&] {
    const std::string x = code.use(in);
    const std::string f = code.parameter("out", accesses().front());
    code.line(axis == Axis::cols
                  ? fmt::format("store_cols(p.{}, {}, {});", f, code.place_of(in), x)
                  : fmt::format("store_rows(p.{}, {}, {});", f, code.scope_place(), x));
  });
}

namespace {

void syntax(StoreVector& p, Syntax& line) {
  line.stores(p.axis == Axis::rows ? "store_rows" : "store_cols", p.to);
  line.value(p.in);
}

void meaning(const StoreVector& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  if (p.axis == Axis::cols) {
    for (std::int64_t c = 0; c < x.cols; ++c) exact.write(p.to, 0, c, x.at(0, c));
    return;
  }
  for (std::int64_t r = 0; r < x.rows; ++r)
    exact.write(p.to, p.to.rows == 1 ? 0 : r, p.to.rows == 1 ? r : 0, x.at(r, 0));
}

void adjoint(const StoreVector& p, ProgramAdjoint& back) {
  const auto stored = back.homes().of_stored(p.to);
  if (!stored) return;
  if (p.axis != Axis::rows || p.to.rows == 1 || !back.rows_resident())
    back.missing("a stored vector outside a loop over rows");
  const Value d = back.fresh("d");
  back.emit(LoadVector{.out = d, .from = *stored, .axis = p.axis});
  back.add(p.in, d, p.in);
}

}  // namespace

void lines::store_vector(LineForms& forms) {
  forms.of<StoreVector>(syntax, meaning, adjoint);
  forms.stores("store_rows", "", StoreVector{.in = 0, .to = {}, .axis = Axis::rows});
  forms.stores("store_cols", "", StoreVector{.in = 0, .to = {}, .axis = Axis::cols});
}

}  // namespace fuseline
