#include "model/primitives/sum_taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/primitives/all_reductions.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"
#include "model/programs/syntax_arguments.h"

namespace fuseline {

std::vector<Value> SumTaps::uses() const { return {dy, x}; }

std::vector<Value> SumTaps::defines() const { return {}; }

std::vector<Access> SumTaps::accesses() const {
  return {{.operand = to, .reach = Reach::tile, .store = true}};
}

std::vector<ValueShape> SumTaps::results(const ValueShapes&, std::int64_t) const { return {}; }

std::vector<ColumnRelation> SumTaps::relations() const { return {{dy, x}}; }

TileDemands SumTaps::demands() const { return {.whole_columns = true}; }

bool SumTaps::check(ShapeCheck& check) const {
  const ValueShape* a = check.use(dy);
  const ValueShape* b = check.use(x);
  if (a == nullptr || b == nullptr) return false;
  if (!check.space().columns_resident)
    check.problem("sums of taps need whole columns: a stream of them", "whole-column");
  if (a->form != Form::tile || *a != *b) check.problem("sums of taps need two tiles of one shape");
  if (shape.taps < 1 || shape.tokens < 1 || shape.batch * shape.tokens != check.space().rows)
    check.problem(fmt::format("{} rows are no {} sequences of {} tokens", check.space().rows,
                              shape.batch, shape.tokens));
  check.expect(to, shape.taps, a->width, "sums =");
  check.stored(to);
  return true;
}

CodeLine SumTaps::text(const ProgramNames& names) const {
  return {fmt::format("store {} = sum_taps({}, {})", names.text(to), names.name(dy), names.name(x)),
          fmt::format("{} taps, full column", shape.taps)};
}

void SumTaps::evaluate(TileContext& tile) const {
  const Matrix& g = tile.value(dy);
  const Matrix& from = tile.value(x);
  FUSELINE_ASSERT(g.rows == tile.area().height, "a tile does not hold whole columns");
  const ReduceFn sum = reductions::sum;
  std::vector<float> products(static_cast<std::size_t>(g.rows));
  std::vector<float> sums(static_cast<std::size_t>(g.cols));
  for (std::int64_t j = 0; j < shape.taps; ++j) {
    const std::int64_t above = shape.taps - 1 - j;
    for (std::int64_t c = 0; c < g.cols; ++c) {
      for (std::int64_t r = 0; r < g.rows; ++r)
        products[static_cast<std::size_t>(r)] =
            r % shape.tokens < above ? 0.0F : g.row(r)[c] * from.row(r - above)[c];
      sums[static_cast<std::size_t>(c)] = sum->of_numbers.value(products.data(), g.rows);
    }
    tile.memory().store(to, j, tile.columns(dy).begin, g.cols, sums.data());
  }
}

void SumTaps::epilogue(EpilogueCode& code) const { code.refuse(name); }

// The row above is loaded or computed again at its own place: other threads have it.
void SumTaps::stream(StreamCode& code) const {
  FUSELINE_ASSERT(code.each(dy) == 8 && code.each(x) == 8, "sums of taps of whole units");
  const std::string tokens = code.count("tokens", shape.tokens);
  std::vector<std::string> totals;
  for (std::int64_t j = 0; j < shape.taps; ++j)
    totals.push_back(code.column_state(reducer_for(code, reductions::sum)));
  code.in_walk([&] {
    const std::string gradient = code.use(dy);
    const std::string place = code.place_of(x);
    const std::string value = code.unique("above");
    code.line(
        fmt::format("const auto {} = {};", value, code.computed_at("there", code.cols(x), x)));
    for (std::int64_t j = 0; j < shape.taps; ++j)
      code.line(fmt::format("gather_tap<{}>(state.{}, {}, p.{}, {}, {});", shape.taps - 1 - j,
                            totals[static_cast<std::size_t>(j)], gradient, tokens, place, value));
  });
  code.step(name);
  const std::string f = code.parameter("taps", accesses().front());
  code.after_walk([&] {
    for (std::int64_t j = 0; j < shape.taps; ++j)
      code.line(fmt::format("store_column_row(p.{}, {}, {}, {});", f, j, code.place_of(dy),
                            code.column_total(totals[static_cast<std::size_t>(j)])));
  });
}

namespace {

void syntax(SumTaps& p, Syntax& line) {
  line.stores("store", p.to);
  line.word("sum_taps");
  line.open();
  line.value(p.dy);
  line.value(p.x);
  convolution_arguments(line, p.shape);
  line.close();
  line.remark("full column");
}

void meaning(const SumTaps& p, Meaning& exact) {
  const ExactMatrix dy = exact.value(p.dy), x = exact.value(p.x);
  for (std::int64_t j = 0; j < p.shape.taps; ++j) {
    const std::int64_t above = p.shape.taps - 1 - j;
    for (std::int64_t c = 0; c < dy.cols; ++c) {
      double sum = 0;
      for (std::int64_t r = 0; r < dy.rows; ++r)
        if (r % p.shape.tokens >= above) sum += dy.at(r, c) * x.at(r - above, c);
      exact.write(p.to, j, c, sum);
    }
  }
}

}  // namespace

void lines::sum_taps(LineForms& forms) {
  forms.of<SumTaps>(syntax, meaning);
  forms.stores("store", "sum_taps", SumTaps{});
}

}  // namespace fuseline
