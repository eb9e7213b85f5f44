#include "model/primitives/head_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> HeadSum::uses() const { return {in}; }

std::vector<Value> HeadSum::defines() const { return {out}; }

std::vector<Access> HeadSum::accesses() const { return {}; }

std::vector<ValueShape> HeadSum::results(const ValueShapes& made, std::int64_t) const {
  return {{Form::tile, shape_of(made, in).width / std::max<std::int64_t>(1, count)}};
}

std::vector<ColumnRelation> HeadSum::relations() const { return {{in, out, 1, count}}; }

TileDemands HeadSum::demands() const {
  return {.column_group = count * width, .column_run = width, .other_columns = true};
}

bool HeadSum::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (s->form != Form::tile) check.problem("heads are columns of a tile");
  if (!check.space().rows_resident)
    check.problem("the heads of a row are in different tiles", "whole-row");
  if (count < 1 || width < 1 || s->width % (count * width) != 0)
    check.problem("sums over " + std::to_string(count) + " heads of " + std::to_string(width) +
                  " columns in " + std::to_string(s->width));
  return true;
}

CodeLine HeadSum::text(const ProgramNames& names) const {
  return {fmt::format("{} = head_sum({})", names.name(out), names.name(in)),
          fmt::format("{} heads of {} columns that share a key", count, width)};
}

void HeadSum::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  Matrix& to = tile.result(out);
  FUSELINE_ASSERT(x.cols % (count * width) == 0, "a tile cuts a group of heads");
  for (std::int64_t r = 0; r < to.rows; ++r) {
    for (std::int64_t c = 0; c < to.cols; ++c) {
      const float* first = x.row(r) + c / width * count * width + c % width;
      float sum = first[0];
      for (std::int64_t head = 1; head < count; ++head) sum += first[head * width];
      to.row(r)[c] = sum;
    }
  }
}

void HeadSum::epilogue(EpilogueCode& code) const { code.refuse(name); }

void HeadSum::stream(StreamCode& code) const {
  code.not_in_rows("sums over heads");
  const std::string place = code.place_of(out);
  const std::string wide = code.computed_at("wide", code.cols(in), in);
  code.step("head_sum");
  code.define(out, fmt::format("head_sum<{}, {}>({}, {})", count, width, place, wide));
}

namespace {

void syntax(HeadSum& p, Syntax& line) {
  line.makes(p.out);
  line.word("head_sum");
  line.open();
  line.value(p.in);
  line.number("count", p.count);
  line.number("width", p.width);
  line.close();
  line.remark("heads that share a key");
}

void meaning(const HeadSum& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  exact.fill(p.out, x.rows, x.cols / p.count, [&](auto r, auto c) {
    double sum = 0;
    for (std::int64_t head = 0; head < p.count; ++head)
      sum += x.at(r, c / p.width * p.count * p.width + head * p.width + c % p.width);
    return sum;
  });
}

}  // namespace

void lines::head_sum(LineForms& forms) {
  forms.of<HeadSum>(syntax, meaning);
  forms.makes("head_sum", HeadSum{});
}

}  // namespace fuseline
