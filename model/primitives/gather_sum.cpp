#include "model/primitives/gather_sum.h"

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

std::vector<Value> GatherSum::uses() const { return {}; }

std::vector<Value> GatherSum::defines() const { return {out}; }

std::vector<Access> GatherSum::accesses() const {
  const Access rows{.operand = from, .reach = Reach::summed_rows};
  if (!ids) return {rows};
  return {{.operand = *ids, .reach = Reach::all_numbers, .names = from.rows}, rows};
}

std::vector<ValueShape> GatherSum::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols}};
}

std::vector<ColumnRelation> GatherSum::relations() const { return {}; }

// Ids that are places are looked at four loads at a time (cuda/kernels/stream/places.cuh).
TileDemands GatherSum::demands() const {
  const std::int64_t searches = ids ? ceil_div(from.rows, each > 1 ? 128 : 32) : 0;
  return {.other_columns = true, .chain = {.searches = searches}};
}

bool GatherSum::check(ShapeCheck& check) const {
  if (!check.space().columns_resident)
    check.problem("a sum of gathered rows needs a stream", "whole-column");
  if (ids)
    check.expect(*ids, from.rows, 1, "row ids");
  else if (period < 1 || from.rows % period != 0 || period > check.space().rows)
    check.problem("rows of " + check.name(from) + " in periods of " + std::to_string(period));
  return true;
}

CodeLine GatherSum::text(const ProgramNames& names) const {
  return {fmt::format("{} = gather_sum {}", names.name(out), names.text(from)),
          ids ? "rows where " + names.text(*ids) + (each > 1 ? fmt::format(" / {}", each) : "") +
                    " is the row"
              : fmt::format("rows m with m mod {} = row", period)};
}

void GatherSum::evaluate(TileContext& tile) const {
  // Rows of the tile are rows of the table; what belongs to one is added in the order of `from`.
  const TileArea& area = tile.area();
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  std::fill(m.data.begin(), m.data.end(), 0.0F);
  std::vector<float> row(static_cast<std::size_t>(m.cols));
  for (std::int64_t i = 0; i < from.rows; ++i) {
    std::int64_t to = ids ? 0 : i % period;
    if (ids) {
      float id = 0;
      tile.memory().load(*ids, i, 0, 1, &id);
      to = static_cast<std::int64_t>(id) / each;
    }
    if (to < area.row_begin || to >= area.row_end) continue;
    tile.memory().load(from, i, range.begin, m.cols, row.data());
    float* sum = m.row(to - area.row_begin);
    for (std::size_t c = 0; c < row.size(); ++c) sum[c] += row[c];
  }
}

void GatherSum::epilogue(EpilogueCode& code) const { code.refuse(name); }

void GatherSum::stream(StreamCode& code) const {
  code.step("gather_sum");
  code.not_in_rows("sums of gathered rows");
  code.only_as_tile("sums of gathered rows");
  const std::string rows = code.parameter(out, "in", accesses().back());
  if (ids)
    code.define(out, fmt::format("{}(p.{}, p.{}, place)",
                                 each > 1 ? fmt::format("gather_sum_of_places<{}>", each)
                                          : std::string("gather_sum"),
                                 rows, code.parameter(out, "ids", accesses().front())));
  else
    code.define(out,
                fmt::format("period_sum(p.{}, p.{}, place)", rows, code.count("period", period)));
}

namespace {

void syntax(GatherSum& p, Syntax& line) {
  line.makes(p.out);
  line.word("gather_sum");
  line.open();
  line.operand(p.from);
  line.named("ids", p.ids);
  line.number("period", p.period, 0);
  line.number("each", p.each, 1);
  line.close();
  line.remark(p.ids ? "rows whose number is the row" : "rows m with m mod period = row");
}

void meaning(const GatherSum& p, Meaning& exact) {
  ExactMatrix& sums = exact.make(p.out, exact.rows(), p.from.cols);
  for (std::int64_t i = 0; i < p.from.rows; ++i) {
    const std::int64_t to = p.ids ? exact.number(*p.ids, i, 0) / p.each : i % p.period;
    if (to < 0 || to >= sums.rows) continue;
    for (std::int64_t c = 0; c < sums.cols; ++c) sums.at(to, c) += exact.read(p.from, i, c);
  }
}

}  // namespace

void lines::gather_sum(LineForms& forms) {
  forms.of<GatherSum>(syntax, meaning);
  forms.makes("gather_sum", GatherSum{});
}

}  // namespace fuseline
