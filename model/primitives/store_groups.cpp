#include "model/primitives/store_groups.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> StoreGroups::uses() const { return {in}; }

std::vector<Value> StoreGroups::defines() const { return {}; }

// A tile has whole groups, so that each number moves in one tile.
std::vector<Access> StoreGroups::accesses() const {
  return {{.operand = to, .reach = Reach::tile, .store = true}};
}

std::vector<ValueShape> StoreGroups::results(const ValueShapes&, std::int64_t) const { return {}; }

std::vector<ColumnRelation> StoreGroups::relations() const { return {}; }

TileDemands StoreGroups::demands() const {
  return {.column_group = group, .column_run = group, .other_columns = true};
}

bool StoreGroups::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (s->form != Form::tile || group < 1 || s->width != to.cols * group) {
    check.problem(fmt::format("{} has {} columns, not one for every {} of {}", check.name(to),
                              to.cols, group, ShapeCheck::text(in)));
    return true;
  }
  if (check.space().batch > 1 || check.space().heads > 1)
    check.problem(check.name(to) + ": groups of columns, where rows are those of heads");
  if (!check.in_prologue() && to.rows != check.space().rows)
    check.expect(to, check.space().rows, to.cols, "tile");
  check.stored(to);
  return true;
}

CodeLine StoreGroups::text(const ProgramNames& names) const {
  return {fmt::format("store_groups {} = {}", names.text(to), names.name(in)),
          fmt::format("one for every {} columns", group)};
}

void StoreGroups::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  const ColumnRange range = tile.columns(in);
  FUSELINE_ASSERT(range.begin % group == 0 && range.count() % group == 0,
                  "a tile cuts a group of columns");
  std::vector<float> numbers(static_cast<std::size_t>(range.count() / group));
  for (std::int64_t r = 0; r < tile.area().rows(); ++r) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = x.row(r)[static_cast<std::int64_t>(i) * group];
    tile.memory().store(to, tile.area().row_begin + r, range.begin / group, range.count() / group,
                        numbers.data());
  }
}

void StoreGroups::epilogue(EpilogueCode& code) const {
  if (code.each(in) != 2) code.refuse("scales of groups of paired values");
  const std::string value = code.use(in);
  code.line(fmt::format("store_groups<{}>(p.{}, {}, {});", group,
                        code.groups_parameter(accesses().front()), code.place(), value));
}

void StoreGroups::stream(StreamCode& code) const {
  code.where_stored(in, true, [&] {
    code.step("store_groups");
    code.line(fmt::format("store_groups<{}>(p.{}, {}, {});", group,
                          code.parameter("groups", accesses().front()), code.here(), code.use(in)));
  });
}

namespace {

void syntax(StoreGroups& p, Syntax& line) {
  line.stores("store_groups", p.to);
  line.value(p.in);
  line.number("group", p.group);
  line.remark("one for every group of columns");
}

void meaning(const StoreGroups& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < p.to.cols; ++c) exact.write(p.to, r, c, x.at(r, c * p.group));
}

}  // namespace

void lines::store_groups(LineForms& forms) {
  forms.of<StoreGroups>(syntax, meaning);
  forms.stores("store_groups", "", StoreGroups{});
}

}  // namespace fuseline
