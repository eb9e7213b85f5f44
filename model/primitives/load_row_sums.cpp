#include "model/primitives/load_row_sums.h"

#include <fmt/format.h>

#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadRowSums::uses() const { return {}; }

std::vector<Value> LoadRowSums::defines() const { return {out}; }

// Whole rows are loaded, whichever of their numbers are summed: they lie in the same sectors.
std::vector<Access> LoadRowSums::accesses() const {
  return {{.operand = from, .reach = Reach::row_numbers}};
}

std::vector<ValueShape> LoadRowSums::results(const ValueShapes&, std::int64_t) const {
  return {{Form::per_row, 1}};
}

std::vector<ColumnRelation> LoadRowSums::relations() const { return {}; }

TileDemands LoadRowSums::demands() const { return {}; }

bool LoadRowSums::check(ShapeCheck& check) const {
  check.expect(from, check.space().rows, from.cols, "numbers of rows");
  if (every < 1 || first < 0 || first >= every || from.cols % every != 0)
    check.problem(fmt::format("of {} columns of {} every {} from column {} are summed", from.cols,
                              check.name(from), every, first));
  return true;
}

CodeLine LoadRowSums::text(const ProgramNames& names) const {
  const std::string some = every > 1 ? fmt::format(", every = {}, first = {}", every, first) : "";
  return {fmt::format("{} = load_row_sums {}{}", names.name(out), names.text(from), some),
          "summed again by every tile of the rows"};
}

void LoadRowSums::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const TileArea& area = tile.area();
  const std::int64_t begin = area.batch_index * area.height + area.row_begin;
  std::vector<float> numbers(static_cast<std::size_t>(from.cols));
  const std::int64_t all =
      from.cols - (tile.fault() == EvaluationFault::leaves_out_last ? every : 0);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    tile.memory().load(from, begin + r, 0, from.cols, numbers.data());
    float sum = 0;
    for (std::int64_t c = first; c < all; c += every) sum += numbers[static_cast<std::size_t>(c)];
    *m.row(r) = sum;
  }
}

void LoadRowSums::epilogue(EpilogueCode& code) const {
  code.row_vector(out, fmt::format("load_row_sums<{}, {}, {}>(p.{}, place)", from.cols, every,
                                   first, code.parameter(accesses().front())));
}

void LoadRowSums::stream(StreamCode& code) const {
  code.step("row_sums");
  const std::string f = code.parameter(out, "row", accesses().front());
  code.define(out, fmt::format("load_row_sums<{}, {}, {}>(p.{}, {})", from.cols, every, first, f,
                               code.scope_place()));
}

namespace {

void syntax(LoadRowSums& p, Syntax& line) {
  line.makes(p.out);
  line.word("load_row_sums");
  line.operand(p.from);
  line.number("every", p.every, 1);
  line.number("first", p.first, 0);
  line.remark("summed again by every tile of the rows");
}

void meaning(const LoadRowSums& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), 1, [&](auto r, auto) {
    auto sum = exact.read(p.from, r, p.first);
    for (std::int64_t c = p.first + p.every; c < p.from.cols; c += p.every)
      sum += exact.read(p.from, r, c);
    return sum;
  });
}

}  // namespace

void lines::load_row_sums(LineForms& forms) {
  forms.of<LoadRowSums>(syntax, meaning);
  forms.makes("load_row_sums", LoadRowSums{});
}

}  // namespace fuseline
