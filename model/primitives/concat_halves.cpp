#include "model/primitives/concat_halves.h"

#include <fmt/format.h>

#include <numeric>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> ConcatHalves::uses() const { return {lower, upper}; }

std::vector<Value> ConcatHalves::defines() const { return {out}; }

std::vector<Access> ConcatHalves::accesses() const { return {}; }

std::vector<ValueShape> ConcatHalves::results(const ValueShapes& made, std::int64_t) const {
  return {{Form::tile, shape_of(made, lower).width + shape_of(made, upper).width}};
}

std::vector<ColumnRelation> ConcatHalves::relations() const {
  if (lower_cols == 0) return {{out, lower, 1, 2}, {out, upper, 1, 2}};
  return {{out, lower, first(), group}, {out, upper, group - first(), group}};
}

TileDemands ConcatHalves::demands() const {
  return {.column_group = group,
          .column_run = std::gcd(first(), group - first()),
          .other_columns = true};
}

bool ConcatHalves::check(ShapeCheck& check) const {
  const ValueShape* a = check.use(lower);
  const ValueShape* b = check.use(upper);
  if (a == nullptr || b == nullptr) return false;
  if (a->form != Form::tile || b->form != Form::tile)
    check.problem("the halves of " + ShapeCheck::text(out) + " are no tiles");
  if (group < 2 || first() >= group || (a->width + b->width) % group != 0 ||
      a->width * (group - first()) != b->width * first())
    check.problem("the halves of " + ShapeCheck::text(out) + " do not match");
  return true;
}

CodeLine ConcatHalves::text(const ProgramNames& names) const {
  return {fmt::format("{} = concat({}, {})", names.name(out), names.name(lower), names.name(upper)),
          lower_cols == 0
              ? fmt::format("halves of every {} columns", group)
              : fmt::format("the first {} and the rest of every {} columns", first(), group)};
}

void ConcatHalves::evaluate(TileContext& tile) const {
  const Matrix& low = tile.value(lower);
  const Matrix& high = tile.value(upper);
  // Parts of unlike widths cannot change places as a whole.
  const bool swapped = tile.fault() == EvaluationFault::swaps_pairs && low.cols == high.cols;
  concat_halves(swapped ? high : low, swapped ? low : high, group, first(), tile.result(out));
}

void ConcatHalves::epilogue(EpilogueCode& code) const { code.refuse(name); }

void ConcatHalves::stream(StreamCode& code) const {
  code.not_in_rows("concatenated halves");
  const std::string place = code.place_of(out);
  const std::string low = code.computed_at("half", code.cols(lower), lower);
  const std::string high = code.computed_at("half", code.cols(upper), upper);
  code.step("concat");
  const std::string function = lower_cols == 0
                                   ? fmt::format("concat_halves<{}>", group)
                                   : fmt::format("concat_parts<{}, {}>", group, first());
  code.define(out, fmt::format("{}({}, {}, {})", function, place, low, high));
}

namespace {

void syntax(ConcatHalves& p, Syntax& line) {
  line.makes(p.out);
  line.word("concat");
  line.open();
  line.value(p.lower);
  line.value(p.upper);
  line.number("group", p.group);
  line.number("first", p.lower_cols, 0);
  line.close();
  line.remark(p.lower_cols == 0 ? "halves" : "the first ones and the rest");
}

void meaning(const ConcatHalves& p, Meaning& exact) {
  const ExactMatrix low = exact.value(p.lower);
  const ExactMatrix high = exact.value(p.upper);
  const std::int64_t rest = p.group - p.first();
  exact.fill(p.out, low.rows, low.cols + high.cols, [&](auto r, auto c) {
    const std::int64_t g = c / p.group, j = c % p.group;
    return j < p.first() ? low.at(r, g * p.first() + j) : high.at(r, g * rest + j - p.first());
  });
}

}  // namespace

void lines::concat_halves(LineForms& forms) {
  forms.of<ConcatHalves>(syntax, meaning);
  forms.makes("concat", ConcatHalves{});
}

}  // namespace fuseline
