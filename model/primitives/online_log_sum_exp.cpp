#include "model/primitives/online_log_sum_exp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/primitives/all_reductions.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

namespace {

// Sums of exponentials above different maxima; only one part has the target.
void join_states(std::vector<float>& joined, const std::vector<float>& part) {
  for (std::size_t i = 0; i < joined.size(); i += 3) {
    const float top = std::max(joined[i], part[i]);
    joined[i + 1] =
        joined[i + 1] * std::exp(joined[i] - top) + part[i + 1] * std::exp(part[i] - top);
    joined[i] = top;
    joined[i + 2] += part[i + 2];
  }
}

auto store_to(const Operand& partial) {
  return [partial](TileMemory& memory, const Partials& all) {
    const std::int64_t blocks = partial.cols / 3;
    for (std::size_t i = 0; i < all.numbers.size(); ++i) {
      const std::int64_t row = all.across + static_cast<std::int64_t>(i / 3);
      const std::int64_t third = static_cast<std::int64_t>(i % 3);
      memory.store(partial, row, third * blocks + all.block, 1, &all.numbers[i]);
    }
  };
}

}  // namespace

std::vector<Value> OnlineLogSumExp::uses() const { return {in}; }

std::vector<Value> OnlineLogSumExp::defines() const { return {}; }

std::vector<Access> OnlineLogSumExp::accesses() const {
  return {
      {.operand = targets, .reach = Reach::row_numbers, .names = partial.cols / 3 * partial_tile},
      {.operand = partial, .reach = Reach::partials, .store = true}};
}

std::vector<ValueShape> OnlineLogSumExp::results(const ValueShapes&, std::int64_t) const {
  return {};
}

std::vector<ColumnRelation> OnlineLogSumExp::relations() const { return {}; }

TileDemands OnlineLogSumExp::demands() const { return {}; }

bool OnlineLogSumExp::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (s->form != Form::tile) check.problem("a log-sum-exp needs a tile");
  check.expect(targets, check.space().rows, 1, "targets");
  check.partials(partial, check.space().rows, 3 * ceil_div(s->width, partial_tile));
  return true;
}

CodeLine OnlineLogSumExp::text(const ProgramNames& names) const {
  return {fmt::format("store {} = log_sum_exp({}, {})", names.text(partial), names.name(in),
                      names.text(targets)),
          "online: max, sum, target per row and tile"};
}

void OnlineLogSumExp::evaluate(TileContext& tile) const {
  const TileArea& area = tile.area();
  const Matrix& x = tile.value(in);
  const ColumnRange range = tile.columns(in);
  std::vector<std::int64_t> wanted;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    float target = 0;
    tile.memory().load(targets, area.row_begin + r, 0, 1, &target);
    wanted.push_back(static_cast<std::int64_t>(target));
  }
  for (std::int64_t block = range.begin / partial_tile; block * partial_tile < range.end; ++block) {
    const std::int64_t first = std::max(range.begin, block * partial_tile);
    const std::int64_t last = std::min(range.end, (block + 1) * partial_tile);
    Partials states{.block = block,
                    .across = area.row_begin,
                    .part = area.col_tile,
                    .whole = first == block * partial_tile &&
                             (last == (block + 1) * partial_tile || last == tile.width(in))};
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const float* values = x.row(r) + first - range.begin;
      const float top = reductions::max.of_numbers.value(values, last - first);
      float sum = 0;
      for (std::int64_t c = 0; c < last - first; ++c) sum += std::exp(values[c] - top);
      const std::int64_t target = wanted[static_cast<std::size_t>(r)] - first;
      const bool here = target >= 0 && target < last - first;
      states.numbers.insert(states.numbers.end(), {top, sum, here ? values[target] : 0.0F});
    }
    tile.leave(std::move(states), {join_states, store_to(partial)});
  }
}

void OnlineLogSumExp::epilogue(EpilogueCode& code) const {
  const std::string x = code.use(in);
  const std::string ids = code.parameter(accesses().front());
  const std::string to = code.parameter(accesses().back());
  code.line(fmt::format("online_log_sum_exp({}, p.{}, p.{}, state.{}, {});", code.place(), to, ids,
                        code.state("LogSumExpState", to), x));
}

void OnlineLogSumExp::stream(StreamCode& code) const {
  code.in_walk([&] {
    const std::string x = code.use(in);
    code.step("log_sum_exp");
    const std::string to = code.parameter("partials", accesses().back());
    const std::string ids = code.parameter("ids", accesses().front());
    code.line(
        fmt::format("log_sum_exp_blocks(p.{}, p.{}, {}, {});", to, ids, code.place_of(in), x));
  });
}

namespace {

void syntax(OnlineLogSumExp& p, Syntax& line) {
  line.stores("store", p.partial);
  line.word("log_sum_exp");
  line.open();
  line.value(p.in);
  line.operand(p.targets);
  line.close();
  line.remark("online: max, sum, target per row and tile");
}

void meaning(const OnlineLogSumExp& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t first = 0; first < x.cols; first += partial_tile) {
      const std::int64_t last = std::min(x.cols, first + partial_tile);
      const std::int64_t target = exact.number(p.targets, r, 0);
      double top = x.at(r, first), sum = 0;
      for (std::int64_t c = first; c < last; ++c) top = std::max(top, x.at(r, c));
      for (std::int64_t c = first; c < last; ++c) sum += std::exp(x.at(r, c) - top);
      const std::int64_t col = first / partial_tile * 3;
      exact.write(p.partial, r, col, top);
      exact.write(p.partial, r, col + 1, sum);
      exact.write(p.partial, r, col + 2, target >= first && target < last ? x.at(r, target) : 0.0);
    }
}

}  // namespace

void lines::online_log_sum_exp(LineForms& forms) {
  forms.of<OnlineLogSumExp>(syntax, meaning);
  forms.stores("store", "log_sum_exp", OnlineLogSumExp{});
}

}  // namespace fuseline
