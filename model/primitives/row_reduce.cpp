#include "model/primitives/row_reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/functions.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/primitives/tile_maths.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/known_functions.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> RowReduce::uses() const { return {in}; }

std::vector<Value> RowReduce::defines() const { return {out}; }

std::vector<Access> RowReduce::accesses() const { return {}; }

std::vector<ValueShape> RowReduce::results(const ValueShapes&, std::int64_t) const {
  return {{Form::per_row, 1}};
}

std::vector<ColumnRelation> RowReduce::relations() const { return {}; }

TileDemands RowReduce::demands() const { return {.whole_rows = true}; }

bool RowReduce::check(ShapeCheck& check) const {
  if (fn->also != nullptr) check.problem("a row reduction makes one number");
  if (!check.space().rows_resident)
    check.problem("a row reduction needs a full row, but tiles hold a part of it", "whole-row");
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (s->form != Form::tile) check.problem("a row reduction needs a tile");
  return true;
}

CodeLine RowReduce::text(const ProgramNames& names) const {
  return {fmt::format("{} = row_{}({})", names.name(out), name_of(fn), names.name(in)), "full row"};
}

void RowReduce::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  Matrix& to = tile.result(out);
  std::int64_t count = x.cols;
  const EvaluationFault fault = tile.fault();
  if (fault == EvaluationFault::leaves_out_last || fault == EvaluationFault::misses_column_end)
    count -= left_out_terms(count);
  for (std::int64_t r = 0; r < x.rows; ++r) to.row(r)[0] = fn->of_numbers.value(x.row(r), count);
}

void RowReduce::epilogue(EpilogueCode& code) const { code.refuse(name); }

void RowReduce::stream(StreamCode& code) const { code.row_reduction(out, in, fn); }

namespace {

void syntax(RowReduce& p, Syntax& line) {
  line.makes(p.out);
  line.word("row_" + name_of(p.fn));
  line.open();
  line.value(p.in);
  line.close();
  line.remark("full row");
}

void meaning(const RowReduce& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  exact.fill(p.out, x.rows, 1, [&](auto r, auto) {
    return exact.reduced(p.fn, std::span(x.data).subspan(static_cast<std::size_t>(r * x.cols),
                                                         static_cast<std::size_t>(x.cols)));
  });
}

void adjoint(const RowReduce& p, ProgramAdjoint& back) {
  const auto d = back.of(p.out);
  if (!d) return;
  const double width = static_cast<double>(back.shape(p.in).width);
  if (p.fn == ReduceFn(reductions::sum)) return back.add(p.in, *d, p.in);
  if (p.fn == ReduceFn(reductions::mean))
    return back.add(p.in, back.map(maps::scale_by_constant, {*d}, 1 / width), p.in);
  if (p.fn != ReduceFn(reductions::sum_squares)) back.missing("row_" + name_of(p.fn));
  const Value twice = back.map(maps::scale_by_constant, {*d}, 2);
  back.add(p.in, back.map(maps::mul, {back.again(p.in), twice}), p.in);
}

}  // namespace

void lines::row_reduce(LineForms& forms) {
  forms.of<RowReduce>(syntax, meaning, adjoint);
  for (const ReduceFn fn : reduce_functions())
    if (fn->also == nullptr)
      forms.makes("row_" + name_of(fn), RowReduce{.out = 0, .fn = fn, .in = 0});
}

}  // namespace fuseline
