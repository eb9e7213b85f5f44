#include "model/primitives/load_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadGroups::uses() const { return {}; }

std::vector<Value> LoadGroups::defines() const { return {out}; }

// A tile has whole groups, so that each number moves in one tile.
std::vector<Access> LoadGroups::accesses() const {
  return {{.operand = from, .reach = Reach::tile}};
}

std::vector<ValueShape> LoadGroups::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols * group}};
}

std::vector<ColumnRelation> LoadGroups::relations() const { return {}; }

TileDemands LoadGroups::demands() const {
  return {.column_group = group, .column_run = group, .other_columns = true};
}

bool LoadGroups::check(ShapeCheck& check) const {
  if (group < 1) check.problem(fmt::format("groups of {} columns", group));
  if (check.space().batch > 1 || check.space().heads > 1)
    check.problem(check.name(from) + ": groups of columns, where rows are those of heads");
  if (from.rows != check.space().rows) check.expect(from, check.space().rows, from.cols, "tile");
  return true;
}

CodeLine LoadGroups::text(const ProgramNames& names) const {
  return {fmt::format("{} = load_groups {}", names.name(out), names.text(from)),
          fmt::format("one for every {} columns", group)};
}

void LoadGroups::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  FUSELINE_ASSERT(range.begin % group == 0 && range.count() % group == 0,
                  "a tile cuts a group of columns");
  std::vector<float> numbers(static_cast<std::size_t>(range.count() / group));
  for (std::int64_t r = 0; r < m.rows; ++r) {
    tile.memory().load(from, tile.area().row_begin + r, range.begin / group, range.count() / group,
                       numbers.data());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      std::fill_n(m.row(r) + static_cast<std::int64_t>(i) * group, group, numbers[i]);
  }
}

// A group is as wide as a slab or wider, mostly: so few numbers come straight from memory.
void LoadGroups::epilogue(EpilogueCode& code) const {
  if (group == 1) return code.load(out, accesses().front());
  const std::string f = code.parameter({.operand = from, .reach = Reach::row_numbers});
  code.define(out,
              fmt::format("load_groups<{}, {}>(p.{}, {})", code.each(out), group, f, code.place()));
}

void LoadGroups::stream(StreamCode& code) const {
  code.step("load_groups");
  const std::string f = code.parameter(out, "groups", accesses().front());
  code.define(out, fmt::format("load_groups<{}>(p.{}, {})", group, f, code.place_of(out)));
}

namespace {

void syntax(LoadGroups& p, Syntax& line) {
  line.makes(p.out);
  line.word("load_groups");
  line.operand(p.from);
  line.number("group", p.group);
  line.remark("one for every group of columns");
}

void meaning(const LoadGroups& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.from.cols * p.group,
             [&](auto r, auto c) { return exact.read(p.from, r, c / p.group); });
}

}  // namespace

void lines::load_groups(LineForms& forms) {
  forms.of<LoadGroups>(syntax, meaning);
  forms.makes("load_groups", LoadGroups{});
}

}  // namespace fuseline
