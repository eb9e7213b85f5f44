#include "model/primitives/concat_halves.h"

#include <fmt/format.h>

#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"

namespace fuseline {

std::vector<Value> ConcatHalves::uses() const { return {lower, upper}; }

std::vector<Value> ConcatHalves::defines() const { return {out}; }

std::vector<Access> ConcatHalves::accesses() const { return {}; }

std::vector<ValueShape> ConcatHalves::results(const ValueShapes& made, std::int64_t) const {
  return {{Form::tile, shape_of(made, lower).width + shape_of(made, upper).width}};
}

std::vector<ColumnRelation> ConcatHalves::relations() const {
  return {{out, lower, 1, 2}, {out, upper, 1, 2}};
}

TileDemands ConcatHalves::demands() const {
  return {.column_group = group, .column_run = group / 2, .other_columns = true};
}

bool ConcatHalves::check(ShapeCheck& check) const {
  const ValueShape* a = check.use(lower);
  const ValueShape* b = check.use(upper);
  if (a == nullptr || b == nullptr) return false;
  if (a->width != b->width || group < 2 || a->width * 2 % group != 0)
    check.problem("the halves of " + ShapeCheck::text(out) + " do not match");
  return true;
}

CodeLine ConcatHalves::text(const ProgramNames& names) const {
  return {fmt::format("{} = concat({}, {})", names.name(out), names.name(lower), names.name(upper)),
          fmt::format("halves of every {} columns", group)};
}

void ConcatHalves::evaluate(TileContext& tile) const {
  const bool swapped = tile.fault() == EvaluationFault::swaps_pairs;
  const Matrix& first = tile.value(swapped ? upper : lower);
  const Matrix& second = tile.value(swapped ? lower : upper);
  concat_halves(first, second, group, tile.result(out));
}

void ConcatHalves::epilogue(EpilogueCode& code) const { code.refuse(name); }

void ConcatHalves::stream(StreamCode& code) const {
  code.not_in_rows("concatenated halves");
  const std::int64_t half = code.cols(out) / 2;
  const std::string place = code.place_of(out);
  const std::string first = code.computed_at("half", half, lower);
  const std::string second = code.computed_at("half", half, upper);
  code.step("concat");
  code.define(out, fmt::format("concat_halves<{}>({}, {}, {})", group, place, first, second));
}

}  // namespace fuseline
