#include "model/primitives/columns.h"

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

std::vector<Value> Columns::uses() const { return {in}; }

std::vector<Value> Columns::defines() const { return {out}; }

std::vector<Access> Columns::accesses() const { return {}; }

std::vector<ValueShape> Columns::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, cols}};
}

std::vector<ColumnRelation> Columns::relations() const { return {{in, out, 1, 1, -begin}}; }

TileDemands Columns::demands() const {
  return {.column_run = begin, .other_columns = true, .slice = ColumnSlice{in, begin, cols}};
}

bool Columns::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (s->form != Form::tile || begin < 0 || cols < 1 || begin + cols > s->width)
    check.problem("columns " + std::to_string(begin) + " to " + std::to_string(begin + cols) +
                  " of " + ShapeCheck::text(in) + " with " + std::to_string(s->width));
  return true;
}

CodeLine Columns::text(const ProgramNames& names) const {
  return {fmt::format("{} = {}[:, {}:{}]", names.name(out), names.name(in), begin, begin + cols)};
}

void Columns::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  Matrix& to = tile.result(out);
  const std::int64_t first = begin + tile.columns(out).begin - tile.columns(in).begin;
  for (std::int64_t r = 0; r < to.rows; ++r) std::copy_n(x.row(r) + first, to.cols, to.row(r));
}

void Columns::epilogue(EpilogueCode& code) const { code.alias(out, in); }

void Columns::stream(StreamCode& code) const { code.alias(out, in); }

namespace {

void syntax(Columns& p, Syntax& line) {
  line.makes(p.out);
  line.slice(p.in, p.begin, p.cols);
}

void meaning(const Columns& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  exact.fill(p.out, x.rows, p.cols, [&](auto r, auto c) { return x.at(r, p.begin + c); });
}

}  // namespace

void lines::columns(LineForms& forms) {
  forms.of<Columns>(syntax, meaning);
  forms.makes("[", Columns{});
}

}  // namespace fuseline
