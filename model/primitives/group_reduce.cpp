#include "model/primitives/group_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/known_functions.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> GroupReduce::uses() const { return {in}; }

std::vector<Value> GroupReduce::defines() const { return {out}; }

std::vector<Access> GroupReduce::accesses() const { return {}; }

std::vector<ValueShape> GroupReduce::results(const ValueShapes& made, std::int64_t) const {
  return {shape_of(made, in)};
}

std::vector<ColumnRelation> GroupReduce::relations() const { return {{in, out}}; }

TileDemands GroupReduce::demands() const {
  return {.column_group = group, .column_run = group, .other_columns = true};
}

bool GroupReduce::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (fn->divided || fn->also != nullptr) check.problem("groups of columns have no " + name_of(fn));
  if (s->form != Form::tile || group < 1 || s->width % group != 0)
    check.problem(fmt::format("{} has no whole groups of {} columns", ShapeCheck::text(in), group));
  return true;
}

CodeLine GroupReduce::text(const ProgramNames& names) const {
  return {fmt::format("{} = group_{}({})", names.name(out), name_of(fn), names.name(in)),
          fmt::format("every {} columns", group)};
}

void GroupReduce::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  Matrix& to = tile.result(out);
  FUSELINE_ASSERT(x.cols % group == 0, "a tile cuts a group of columns");
  const EvaluationFault fault = tile.fault();
  const bool misses =
      fault == EvaluationFault::leaves_out_last || fault == EvaluationFault::misses_column_end;
  const std::int64_t count = group - (misses ? std::max<std::int64_t>(1, group / 16) : 0);
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.cols; c += group)
      std::fill_n(to.row(r) + c, group, fn->of_numbers.value(x.row(r) + c, count));
}

void GroupReduce::epilogue(EpilogueCode& code) const {
  const char* reducer = reducer_for(code, fn);
  if (code.slab_cols() % group != 0) return code.gather_group(out, in, reducer, group);
  code.define(out, fmt::format("group_reduce<{}, {}>({})", reducer, group, code.use(in)));
}

void GroupReduce::stream(StreamCode& code) const {
  if (code.lanes_hold(group) && code.each(in) == 8) {
    const std::string x = code.use(in);
    code.step("group_reduce");
    return code.define(out,
                       fmt::format("reduce_lanes<{}, {}>({})", reducer_for(code, fn), group, x));
  }
  code.not_in_rows("sums of groups of columns");
  const std::string place = code.place_of(out);
  const std::string there = code.computed_at("there", code.cols(in), in);
  code.step("group_reduce");
  code.define(
      out, fmt::format("group_reduce<{}, {}>({}, {})", reducer_for(code, fn), group, place, there));
}

namespace {

void syntax(GroupReduce& p, Syntax& line) {
  line.makes(p.out);
  line.word("group_" + name_of(p.fn));
  line.open();
  line.value(p.in);
  line.number("group", p.group);
  line.close();
  line.remark("of every group of columns");
}

void meaning(const GroupReduce& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  exact.fill(p.out, x.rows, x.cols, [&](auto r, auto c) {
    const std::int64_t first = r * x.cols + c / p.group * p.group;
    return exact.reduced(p.fn, std::span(x.data).subspan(static_cast<std::size_t>(first),
                                                         static_cast<std::size_t>(p.group)));
  });
}

}  // namespace

void lines::group_reduce(LineForms& forms) {
  forms.of<GroupReduce>(syntax, meaning);
  for (const ReduceFn fn : reduce_functions())
    if (fn->also == nullptr)
      forms.makes("group_" + name_of(fn), GroupReduce{.out = 0, .fn = fn, .in = 0});
}

}  // namespace fuseline
