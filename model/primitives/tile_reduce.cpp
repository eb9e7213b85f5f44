#include "model/primitives/tile_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/primitives/all_reductions.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/functions.h"
#include "model/primitives/load_groups.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/known_functions.h"
#include "model/programs/meaning.h"

namespace fuseline {

namespace {

PartialRule rule_of(const TileReduce& reduce) {
  const auto join = [fn = reduce.fn](std::vector<float>& joined, const std::vector<float>& part) {
    for (std::size_t i = 0; i < joined.size(); ++i)
      joined[i] = fn->joined.value(joined[i], part[i]);
  };
  // Those of consecutive rows (columns) follow each other.
  const auto store = [to = reduce.partial, each = reduce.numbers()](TileMemory& memory,
                                                                    const Partials& all) {
    const std::int64_t count = static_cast<std::int64_t>(all.numbers.size()) / each;
    for (std::int64_t i = 0; i < count; ++i)
      memory.store(to, all.across + i, all.block * each, each, all.numbers.data() + i * each);
  };
  return {join, store};
}

}  // namespace

void TileReduce::leave(StreamCode& code, const char* reducer, Value v, const std::string& to,
                       int index) const {
  code.in_walk([&] {
    const std::string x = code.use(v);
    if (axis == Axis::rows) {
      code.whole_blocks();
      code.line(fmt::format("reduce_row_blocks<{}>(p.{}, {}, {}, {}, {});", reducer, to, index,
                            numbers(), code.place_of(v), x));
      return;
    }
    FUSELINE_ASSERT(code.each(v) == 8, "column reductions of whole units");
    const std::string total = code.column_state(reducer);
    code.line(fmt::format("gather_columns(state.{}, {}, {});", total, x, code.here()));
    code.after_block(total, [&] {
      code.line(fmt::format("store_column_block(p.{}, {}, {}, block, {}, {});", to, index,
                            numbers(), code.place_of(v), code.column_total(total)));
    });
  });
}

std::vector<Value> TileReduce::uses() const {
  if (second < 0) return {in};
  return {in, second};
}

std::vector<Value> TileReduce::defines() const { return {}; }

std::vector<Access> TileReduce::accesses() const {
  return {{.operand = partial, .reach = Reach::partials, .store = true, .along = axis}};
}

std::vector<ValueShape> TileReduce::results(const ValueShapes&, std::int64_t) const { return {}; }

std::vector<ColumnRelation> TileReduce::relations() const {
  if (second < 0) return {};
  return {{in, second}};
}

TileDemands TileReduce::demands() const { return {}; }

bool TileReduce::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (s->form != Form::tile) check.problem("partials come from a tile");
  const bool by_row = axis == Axis::rows;
  const std::int64_t length = by_row ? s->width : check.space().rows;
  if (second >= 0) {
    const ValueShape* other = check.use(second);
    if (other != nullptr && *other != *s)
      check.problem("partials of two values of different shapes");
    if (fn != reductions::sum) check.problem("partials of two values are sums");
  }
  check.partials(partial, by_row ? check.space().rows : s->width,
                 numbers() * ceil_div(length, partial_tile));
  return true;
}

CodeLine TileReduce::text(const ProgramNames& names) const {
  const std::string also =
      second >= 0 ? fmt::format(", {}({})", name_of(fn), names.name(second)) : "";
  return {
      fmt::format("store {} = {}({}){}", names.text(partial), name_of(fn), names.name(in), also),
      axis == Axis::rows ? "fp32 partials, one per row and tile"
                         : "fp32 partials, one per column and tile"};
}

void TileReduce::evaluate(TileContext& tile) const {
  const TileArea& area = tile.area();
  FUSELINE_ASSERT(area.batch == 1, "partials of a batch");
  const Matrix& x = tile.value(in);
  const ColumnRange range = tile.columns(in);
  const bool by_row = axis == Axis::rows;
  const std::int64_t begin = by_row ? range.begin : area.row_begin;
  const std::int64_t end = by_row ? range.end : area.row_end;
  const std::int64_t length = by_row ? tile.width(in) : area.height;
  const std::int64_t count = by_row ? x.rows : x.cols;
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  // The i-th row (column) of a value between two places along the reduced axis.
  const auto line = [&](const Matrix& m, std::int64_t i, std::int64_t from, std::int64_t to) {
    if (by_row) return m.row(i) + from;
    for (std::int64_t r = from; r < to; ++r)
      column[static_cast<std::size_t>(r - from)] = m.row(r)[i];
    return static_cast<const float*>(column.data());
  };
  for (std::int64_t block = begin / partial_tile; block * partial_tile < end; ++block) {
    const std::int64_t first = std::max(begin, block * partial_tile);
    const std::int64_t last = std::min(end, (block + 1) * partial_tile);
    Partials sums{.block = block,
                  .across = by_row ? area.row_begin : range.begin,
                  .part = by_row ? area.col_tile : area.row_tile,
                  .whole = first == block * partial_tile &&
                           (last == (block + 1) * partial_tile || last == length)};
    sums.numbers.resize(static_cast<std::size_t>(count * numbers()));
    for (std::int64_t i = 0; i < count; ++i) {
      float* to = sums.numbers.data() + i * numbers();
      const float* values = line(x, i, first - begin, last - begin);
      to[0] = fn->of_numbers.value(values, last - first);
      if (fn->also != nullptr) to[1] = fn->also->of_numbers.value(values, last - first);
      if (second < 0) continue;
      values = line(tile.value(second), i, first - begin, last - begin);
      to[1] = fn->of_numbers.value(values, last - first);
    }
    tile.leave(std::move(sums), rule_of(*this));
  }
}

void TileReduce::epilogue(EpilogueCode& code) const {
  const std::string x = code.use(in);
  const std::string to = code.parameter(accesses().front());
  const bool two = fn->also != nullptr;
  const char* first = reducer_for(code, fn);
  const char* next = two ? reducer_for(code, *fn->also) : first;
  const std::string other = second >= 0 ? code.use(second) : two ? x : "";
  if (axis == Axis::cols) {
    code.line(fmt::format("reduce_cols<{}>({}, p.{}, {}, {}, 0, {});", first, code.place(), to, x,
                          numbers(), code.column_reduction(code.each(in))));
    if (!other.empty())
      code.line(fmt::format("reduce_cols<{}>({}, p.{}, {}, 2, 1, {});", next, code.place(), to,
                            other, code.column_reduction(code.each(in))));
    return;
  }
  const std::string a = code.state(fmt::format("RowState<{}>", first), to);
  if (other.empty())
    return code.line(fmt::format("reduce_rows({}, p.{}, state.{}, {});", code.place(), to, a, x));
  const std::string b = code.state(fmt::format("RowState<{}>", next), to);
  code.line(fmt::format("reduce_rows({}, p.{}, state.{}, state.{}, {}, {});", code.place(), to, a,
                        b, x, other));
}

void TileReduce::stream(StreamCode& code) const {
  const bool two = fn->also != nullptr;
  const char* first = reducer_for(code, fn);
  const std::string to = code.parameter("partials", accesses().front());
  leave(code, first, in, to, 0);
  if (numbers() == 2)
    leave(code, two ? reducer_for(code, *fn->also) : first, two ? in : second, to, 1);
  code.step(fn->name.value);
}

namespace {

void syntax(TileReduce& p, Syntax& line) {
  line.stores("store", p.partial);
  line.word(word_of(p.fn));
  line.open();
  line.value(p.in);
  std::vector<Value> also;
  if (p.second >= 0) also.push_back(p.second);
  line.more(also);
  p.second = also.empty() ? -1 : also.front();
  int along = p.axis == Axis::rows ? 0 : 1;
  static constexpr std::string_view kAxes[] = {"rows", "columns"};
  line.choice("of", along, kAxes);
  p.axis = along == 0 ? Axis::rows : Axis::cols;
  line.close();
  line.remark(p.axis == Axis::rows ? "fp32 partials, one per row and tile"
                                   : "fp32 partials, one per column and tile");
}

void meaning(const TileReduce& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  const bool by_row = p.axis == Axis::rows;
  const std::int64_t lines = by_row ? x.rows : x.cols, length = by_row ? x.cols : x.rows;
  const auto reduce = [&](ReduceFn how, const ExactMatrix& m, std::int64_t line, std::int64_t b) {
    std::vector<double> numbers;
    for (std::int64_t i = b * partial_tile; i < std::min(length, (b + 1) * partial_tile); ++i)
      numbers.push_back(by_row ? m.at(line, i) : m.at(i, line));
    return exact.reduced(how, numbers);
  };
  for (std::int64_t i = 0; i < lines; ++i)
    for (std::int64_t b = 0; b * partial_tile < length; ++b) {
      exact.write(p.partial, i, b * p.numbers(), reduce(p.fn, x, i, b));
      if (p.fn->also != nullptr) exact.write(p.partial, i, b * 2 + 1, reduce(*p.fn->also, x, i, b));
      if (p.second >= 0)
        exact.write(p.partial, i, b * 2 + 1, reduce(p.fn, exact.value(p.second), i, b));
    }
}

void adjoint(const TileReduce& p, ProgramAdjoint& back) {
  const auto stored = back.homes().of_stored(p.partial);
  if (!stored) return;
  const bool squares = p.fn == ReduceFn(reductions::sum_squares);
  if (p.axis != Axis::rows || p.second >= 0 || (!squares && p.fn != ReduceFn(reductions::sum)))
    back.missing("partials other than sums along rows");
  if (back.shape(p.in).width % partial_tile != 0)
    back.missing(fmt::format("partials of {} columns, no multiple of {},", back.shape(p.in).width,
                             partial_tile));
  const Value d = back.fresh("d");
  back.emit(LoadGroups{.out = d, .from = *stored, .group = partial_tile});
  if (!squares) return back.add(p.in, d, p.in);
  const Value twice = back.map(maps::scale_by_constant, {d}, 2);
  back.add(p.in, back.map(maps::mul, {back.again(p.in), twice}), p.in);
}

}  // namespace

void lines::tile_reduce(LineForms& forms) {
  forms.of<TileReduce>(syntax, meaning, adjoint);
  for (const ReduceFn fn : reduce_functions())
    if (!fn->divided)
      forms.stores("store", word_of(fn),
                   TileReduce{.fn = fn, .axis = Axis::rows, .in = 0, .partial = {}});
}

}  // namespace fuseline
