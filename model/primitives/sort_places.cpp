#include "model/primitives/sort_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> SortPlaces::uses() const { return {}; }

std::vector<Value> SortPlaces::defines() const { return {out}; }

// A key's place depends on all the others.
std::vector<Access> SortPlaces::accesses() const {
  return {{.operand = keys, .reach = Reach::all_numbers, .names = keys.rows}};
}

std::vector<ValueShape> SortPlaces::results(const ValueShapes&, std::int64_t) const {
  return {{Form::per_row, 1}};
}

std::vector<ColumnRelation> SortPlaces::relations() const { return {}; }

// Taken for four keys a lane at a time, as the compiler may unroll the loop: nobody read its code.
// The time of 8,800 keys speaks for it, one key at a time would have been 115 us and not 23.
TileDemands SortPlaces::demands() const {
  return {.search = TileDemands::Search{keys.rows * keys.cols, 128}};
}

bool SortPlaces::check(ShapeCheck& check) const {
  if (keys.rows * keys.cols != check.space().rows)
    check.problem(fmt::format("{} keys in {} rows", keys.rows * keys.cols, check.space().rows));
  return true;
}

CodeLine SortPlaces::text(const ProgramNames& names) const {
  return {fmt::format("{} = sort_places {}", names.name(out), names.text(keys)),
          "equal keys keep their order"};
}

void SortPlaces::evaluate(TileContext& tile) const {
  std::vector<float> all(static_cast<std::size_t>(keys.rows * keys.cols));
  for (std::int64_t r = 0; r < keys.rows; ++r)
    tile.memory().load(keys, r, 0, keys.cols, all.data() + r * keys.cols);
  std::vector<std::int64_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return all[static_cast<std::size_t>(a)] < all[static_cast<std::size_t>(b)];
  });
  Matrix& m = tile.result(out);
  for (std::int64_t r = 0; r < m.rows; ++r)
    m.row(r)[0] = static_cast<float>(order[static_cast<std::size_t>(tile.area().row_begin + r)]);
}

void SortPlaces::epilogue(EpilogueCode& code) const { code.refuse(name); }

// The kernel's value is the inverse, the place of every row's key, and its store turns it round.
void SortPlaces::stream(StreamCode& code) const {
  code.step("sort_places");
  code.not_in_rows("sorted places");
  code.only_as_tile("sorted places");
  const std::string f = code.parameter(out, "keys", accesses().front());
  code.define(out, fmt::format("sort_places<{}>(p.{}, place)", keys.cols, f));
}

namespace {

void syntax(SortPlaces& p, Syntax& line) {
  line.makes(p.out);
  line.word("sort_places");
  line.operand(p.keys);
  line.remark("equal keys keep their order");
}

void meaning(const SortPlaces& p, Meaning& exact) {
  std::vector<std::int64_t> keys, order;
  for (std::int64_t i = 0; i < p.keys.rows * p.keys.cols; ++i) {
    keys.push_back(exact.number(p.keys, i / p.keys.cols, i % p.keys.cols));
    order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](auto i) { return keys[static_cast<std::size_t>(i)]; });
  exact.fill(p.out, exact.rows(), 1,
             [&](auto r, auto) { return static_cast<double>(order[static_cast<std::size_t>(r)]); });
}

}  // namespace

void lines::sort_places(LineForms& forms) {
  forms.of<SortPlaces>(syntax, meaning);
  forms.makes("sort_places", SortPlaces{});
}

}  // namespace fuseline
