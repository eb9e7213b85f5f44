#include "model/primitives/store_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/load_tile.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> StoreTile::uses() const { return {in}; }

std::vector<Value> StoreTile::defines() const { return {}; }

std::vector<Access> StoreTile::accesses() const {
  return {{.operand = to, .reach = Reach::tile, .store = true, .accumulate = accumulate}};
}

std::vector<ValueShape> StoreTile::results(const ValueShapes&, std::int64_t) const { return {}; }

std::vector<ColumnRelation> StoreTile::relations() const { return {}; }

TileDemands StoreTile::demands() const { return {}; }

bool StoreTile::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  const bool repeated = s->form == Form::per_row || s->form == Form::per_col;
  if (s->form != Form::tile && !repeated)
    check.problem("what is stored to " + check.name(to) + " is no tile");
  if (s->form == Form::per_row) {
    check.tile_operand(to, check.space().cols);
    check.stored(to);
    return true;
  }
  if (!check.in_prologue()) check.tile_operand(to, s->width);
  if (to.cols != s->width && check.space().batch == 1 && check.space().heads == 1)
    check.problem(check.name(to) + " is " + std::to_string(to.cols) + " columns wide, the value " +
                  std::to_string(s->width));
  check.stored(to);
  return true;
}

CodeLine StoreTile::text(const ProgramNames& names) const {
  return {fmt::format("store {} {} {}", names.text(to), accumulate ? "+=" : "=", names.name(in))};
}

void StoreTile::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  const ColumnRange range = tile.columns(in);
  const bool vector = tile.form(in) == Form::per_row;  // repeated
  const std::int64_t end = vector ? std::min(range.end, to.cols) : range.end;
  std::vector<float> row(static_cast<std::size_t>(end - range.begin));
  for (std::int64_t r = 0; r < tile.area().rows(); ++r) {
    const Corner at = tile.place(to, tile.width(in), r);
    const float* values = x.row(x.rows == 1 ? 0 : r);
    if (vector) {
      std::fill(row.begin(), row.end(), values[0]);
      values = row.data();
    }
    if (accumulate) {
      std::vector<float> sum(row.size());
      tile.memory().load(to, at.row, at.col + range.begin, end - range.begin, sum.data());
      for (std::size_t c = 0; c < sum.size(); ++c) row[c] = sum[c] + values[c];
      values = row.data();
    }
    tile.memory().store(to, at.row, at.col + range.begin, end - range.begin, values);
  }
}

void StoreTile::epilogue(EpilogueCode& code) const {
  const std::string x = code.use(in);
  if (code.form(in) != Form::tile) code.refuse("a vector that is stored as a tile");
  const std::string f = code.parameter(accesses().front(), in);
  FUSELINE_ASSERT(!(code.within_slab() && accumulate), "parts are stored, not added");
  const char* call = code.within_slab() ? "store_part" : "store_tile";
  code.line(
      fmt::format("{}(p.{}, {}, {});", accumulate ? "accumulate_tile" : call, f, code.place(), x));
}

void StoreTile::stream(StreamCode& code) const {
  code.where_stored(in, true, [&] {
    const std::string x = code.use(in);
    const std::string f = code.parameter("out", accesses().front());
    code.line(
        fmt::format("store_tile{}(p.{}, {}, {});", accumulate ? "<true>" : "", f, code.here(), x));
  });
}

namespace {

void syntax(StoreTile& p, Syntax& line) {
  line.stores("store", p.to, &p.accumulate);
  line.value(p.in);
}

void meaning(const StoreTile& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  const std::int64_t width = x.cols == 1 ? p.to.cols / exact.heads() : x.cols;
  const std::int64_t rows = x.rows == 1 ? exact.rows() : x.rows;  // dK and dV have the keys' rows
  for (std::int64_t r = 0; r < rows; ++r) {
    const Corner at = exact.place(p.to, width, r);
    for (std::int64_t c = 0; c < width; ++c) {
      const double old = p.accumulate ? exact.read(p.to, at.row, at.col + c) : 0.0;
      exact.write(p.to, at.row, at.col + c, old + x.repeated(r, c));
    }
  }
}

void adjoint(const StoreTile& p, ProgramAdjoint& back) {
  const auto stored = back.homes().of_stored(p.to);
  if (!stored) return;
  const Value d = back.fresh("d");
  back.emit(LoadTile{.out = d, .from = *stored});
  back.add(p.in, d, d);
}

}  // namespace

void lines::store_tile(LineForms& forms) {
  forms.of<StoreTile>(syntax, meaning, adjoint);
  forms.stores("store", "", StoreTile{});
}

}  // namespace fuseline
