#include "model/primitives/sort_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

namespace {
constexpr const char* kRemark = "equal keys keep their order";
}  // namespace

std::vector<Value> SortPlaces::uses() const { return {}; }

std::vector<Value> SortPlaces::defines() const {
  return places < 0 ? std::vector<Value>{order} : std::vector<Value>{order, places};
}

bool SortPlaces::counts() const {
  return values > 0 && values <= kMostValues && keys.rows * keys.cols > kFewKeys;
}

// Every thread block goes through all keys: so few of them that the multiprocessors of a GPU of
// today have one each (cuda/kernels/stream/sort.cuh).
std::int64_t SortPlaces::rows_of_thread() const {
  constexpr std::int64_t kBlocks = 128, kMostRows = 4;
  std::int64_t rows = 1;
  while (rows < kMostRows && keys.rows * keys.cols > kBlocks * kCountingThreads * rows) rows *= 2;
  return rows;
}

// A key's place depends on all the others.
std::vector<Access> SortPlaces::accesses() const {
  return {{.operand = keys, .reach = Reach::all_numbers, .names = keys.rows}};
}

std::vector<ValueShape> SortPlaces::results(const ValueShapes&, std::int64_t) const {
  return std::vector<ValueShape>(defines().size(), {Form::per_row, 1});
}

std::vector<ColumnRelation> SortPlaces::relations() const { return {}; }

// Compared, taken for four keys a lane at a time, as the compiler may unroll the loop: nobody read
// its code. The time of 8,800 keys speaks for it, one key at a time would have been 115 us and not
// 23. Counted, taken for 8 keys of each thread at a time, and for two steps more, the barriers and
// sums behind them. The 8 were fitted, and the loop asks for more at once: 65,536 keys took 15.0 us
// on an H200, 8,800 4.3 and 3,000 3.3.
TileDemands SortPlaces::demands() const {
  const std::int64_t all = keys.rows * keys.cols;
  if (counts()) {
    constexpr std::int64_t kAtATime = 8, kLanes = 32;
    return {.chain = {.searches = ceil_div(all, kCountingThreads * kAtATime) + 2,
                      .rows = kLanes * rows_of_thread()}};
  }
  return {.chain = {.loads = 1, .searches = ceil_div(all, 128)}};
}

bool SortPlaces::check(ShapeCheck& check) const {
  if (keys.rows * keys.cols != check.space().rows)
    check.problem(fmt::format("{} keys in {} rows", keys.rows * keys.cols, check.space().rows));
  if (keys.rows * keys.cols > kMostKeys)
    check.problem(
        fmt::format("{} keys of {}: places are stored as fp32, which has every whole "
                    "number up to {}",
                    keys.rows * keys.cols, check.name(keys), kMostKeys));
  return true;
}

CodeLine SortPlaces::text(const ProgramNames& names) const {
  const std::string made =
      places < 0 ? names.name(order) : names.name(order) + ", " + names.name(places);
  return {fmt::format("{} = sort_places {}", made, names.text(keys)), kRemark};
}

void SortPlaces::evaluate(TileContext& tile) const {
  std::vector<float> all(static_cast<std::size_t>(keys.rows * keys.cols));
  for (std::int64_t r = 0; r < keys.rows; ++r)
    tile.memory().load(keys, r, 0, keys.cols, all.data() + r * keys.cols);
  // As the kernel that counts has them, where the promise of `values` is broken.
  if (counts())
    for (float& key : all) {
      const float known = std::clamp(key, 0.0F, static_cast<float>(values - 1));
      key = std::isnan(key) ? 0.0F : std::trunc(known);
    }
  std::vector<std::int64_t> sorted(all.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
    return all[static_cast<std::size_t>(a)] < all[static_cast<std::size_t>(b)];
  });
  Matrix& m = tile.result(order);
  for (std::int64_t r = 0; r < m.rows; ++r)
    m.row(r)[0] = static_cast<float>(sorted[static_cast<std::size_t>(tile.area().row_begin + r)]);
  if (places < 0) return;
  Matrix& at = tile.result(places);
  for (std::size_t p = 0; p < sorted.size(); ++p) {
    const std::int64_t row = sorted[p] - tile.area().row_begin;
    if (row >= 0 && row < at.rows) at.row(row)[0] = static_cast<float>(p);
  }
}

void SortPlaces::epilogue(EpilogueCode& code) const { code.refuse(name); }

// What the kernel finds is the inverse, the place of every row's key. The store of the order turns
// it round.
void SortPlaces::stream(StreamCode& code) const {
  code.step("sort_places");
  code.not_in_rows("sorted places");
  code.only_as_tile("sorted places");
  const std::string f = code.parameter(order, "keys", accesses().front());
  const std::string found =
      counts() ? fmt::format("count_places<{}, {}>(p.{}, place)", keys.cols, values, f)
               : fmt::format("sort_places<{}>(p.{}, place)", keys.cols, f);
  code.define(order, found);
  if (places >= 0) code.name(places, fmt::format("numbers_of({})", code.use(order)));
}

namespace {

void syntax(SortPlaces& p, Syntax& line) {
  line.makes_some(p.order, p.places);
  line.word("sort_places");
  line.open();
  line.operand(p.keys);
  line.number("values", p.values, 0);
  line.close();
  line.remark(fmt::format("{}; values above 0 promise whole keys below them", kRemark));
}

void meaning(const SortPlaces& p, Meaning& exact) {
  std::vector<std::int64_t> keys, order;
  for (std::int64_t i = 0; i < p.keys.rows * p.keys.cols; ++i) {
    keys.push_back(exact.number(p.keys, i / p.keys.cols, i % p.keys.cols));
    order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](auto i) { return keys[static_cast<std::size_t>(i)]; });
  exact.fill(p.order, exact.rows(), 1,
             [&](auto r, auto) { return static_cast<double>(order[static_cast<std::size_t>(r)]); });
  if (p.places < 0) return;
  ExactMatrix& places = exact.make(p.places, exact.rows(), 1);
  for (std::size_t at = 0; at < order.size(); ++at)
    places.at(order[at], 0) = static_cast<double>(at);
}

}  // namespace

void lines::sort_places(LineForms& forms) {
  forms.of<SortPlaces>(syntax, meaning);
  forms.makes("sort_places", SortPlaces{});
}

}  // namespace fuseline
