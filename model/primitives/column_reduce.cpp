#include "model/primitives/column_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/primitives/all_reductions.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/primitives/tile_maths.h"
#include "model/programs/all_lines.h"
#include "model/programs/known_functions.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> ColumnReduce::uses() const { return {in}; }

std::vector<Value> ColumnReduce::defines() const { return {out}; }

std::vector<Access> ColumnReduce::accesses() const { return {}; }

std::vector<ValueShape> ColumnReduce::results(const ValueShapes& made, std::int64_t) const {
  return {{Form::per_col, shape_of(made, in).width}};
}

std::vector<ColumnRelation> ColumnReduce::relations() const { return {{in, out}}; }

TileDemands ColumnReduce::demands() const { return {.whole_columns = true}; }

bool ColumnReduce::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (!check.space().columns_resident)
    check.problem("a column reduction needs whole columns: a stream of them", "whole-column");
  if (s->form != Form::tile) check.problem("a column reduction needs a tile");
  if (fn != reductions::sum) check.problem("a column reduction is a sum");
  return true;
}

CodeLine ColumnReduce::text(const ProgramNames& names) const {
  return {fmt::format("{} = column_{}({})", names.name(out), name_of(fn), names.name(in)),
          "full column"};
}

void ColumnReduce::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  FUSELINE_ASSERT(x.rows == tile.area().height, "a tile does not hold whole columns");
  Matrix& to = tile.result(out);
  const bool misses = tile.fault() == EvaluationFault::misses_column_end;
  const std::int64_t count = x.rows - (misses ? left_out_terms(x.rows) : 0);
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t r = 0; r < x.rows; ++r) column[static_cast<std::size_t>(r)] = x.row(r)[c];
    to.row(0)[c] = fn->of_numbers.value(column.data(), count);
  }
}

void ColumnReduce::epilogue(EpilogueCode& code) const { code.refuse(name); }

void ColumnReduce::stream(StreamCode& code) const {
  // Gathered on the way down, known after it.
  const std::string total = code.column_state(reducer_for(code, fn));
  code.in_walk([&] {
    const std::string x = code.use(in);
    code.line(fmt::format("gather_columns(state.{}, {}, {});", total, x, code.here()));
  });
  code.step("column_sum");
  code.define(out, code.column_total(total));
}

namespace {

void syntax(ColumnReduce& p, Syntax& line) {
  line.makes(p.out);
  line.word("column_" + name_of(p.fn));
  line.open();
  line.value(p.in);
  line.close();
  line.remark("full column");
}

void meaning(const ColumnReduce& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  exact.fill(p.out, 1, x.cols, [&](auto, auto c) {
    std::vector<double> column;
    for (std::int64_t r = 0; r < x.rows; ++r) column.push_back(x.at(r, c));
    return exact.reduced(p.fn, column);
  });
}

}  // namespace

void lines::column_reduce(LineForms& forms) {
  forms.of<ColumnReduce>(syntax, meaning);
  for (const ReduceFn fn : reduce_functions())
    if (fn->also == nullptr)
      forms.makes("column_" + name_of(fn), ColumnReduce{.out = 0, .fn = fn, .in = 0});
}

}  // namespace fuseline
