#include "model/primitives/sum_sequences.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "model/primitives/all_reductions.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> SumSequences::uses() const { return {in}; }

std::vector<Value> SumSequences::defines() const { return {}; }

std::vector<Access> SumSequences::accesses() const {
  return {{.operand = to, .reach = Reach::sequence_rows, .store = true, .tokens = tokens}};
}

std::vector<ValueShape> SumSequences::results(const ValueShapes&, std::int64_t) const { return {}; }

std::vector<ColumnRelation> SumSequences::relations() const { return {}; }

TileDemands SumSequences::demands() const { return {.rows_of_tile = tokens}; }

bool SumSequences::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  if (!check.space().columns_resident)
    check.problem("sums over the rows of sequences need whole columns: a stream of them",
                  "whole-column");
  if (s->form != Form::tile) check.problem("sums over the rows of sequences need a tile");
  if (tokens < 1 || to.rows * tokens != check.space().rows)
    check.problem(fmt::format("{} has {} rows, not one for every {} of {}", check.name(to), to.rows,
                              tokens, check.space().rows));
  if (to.cols != s->width) check.expect(to, to.rows, s->width, "sums =");
  check.stored(to);
  return true;
}

CodeLine SumSequences::text(const ProgramNames& names) const {
  return {fmt::format("store {} = sum_sequences({})", names.text(to), names.name(in)),
          fmt::format("sums of {} rows", tokens)};
}

void SumSequences::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(in);
  FUSELINE_ASSERT(x.rows == tokens && tile.area().row_begin % tokens == 0,
                  "a tile does not hold the rows of one sequence");
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  std::vector<float> sums(static_cast<std::size_t>(x.cols));
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t r = 0; r < x.rows; ++r) column[static_cast<std::size_t>(r)] = x.row(r)[c];
    sums[static_cast<std::size_t>(c)] =
        ReduceFn(reductions::sum)->of_numbers.value(column.data(), x.rows);
  }
  tile.memory().store(to, tile.area().row_begin / tokens, tile.columns(in).begin, x.cols,
                      sums.data());
}

void SumSequences::epilogue(EpilogueCode& code) const { code.refuse(name); }

void SumSequences::stream(StreamCode& code) const {
  const std::string total = code.column_state(reducer_for(code, reductions::sum));
  code.in_walk([&] {
    const std::string x = code.use(in);
    code.line(fmt::format("gather_columns(state.{}, {}, {});", total, x, code.here()));
  });
  code.step("sum_sequences");
  const std::string f = code.parameter("sums", accesses().front());
  code.after_walk([&] {
    code.line(fmt::format("store_column_row(p.{}, block, {}, {});", f, code.place_of(in),
                          code.column_total(total)));
  });
}

namespace {

void syntax(SumSequences& p, Syntax& line) {
  line.stores("store", p.to);
  line.word("sum_sequences");
  line.open();
  line.value(p.in);
  line.number("tokens", p.tokens);
  line.close();
}

void meaning(const SumSequences& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in);
  for (std::int64_t b = 0; b * p.tokens < x.rows; ++b)
    for (std::int64_t c = 0; c < x.cols; ++c) {
      double sum = 0;
      for (std::int64_t t = 0; t < p.tokens; ++t) sum += x.at(b * p.tokens + t, c);
      exact.write(p.to, b, c, sum);
    }
}

}  // namespace

void lines::sum_sequences(LineForms& forms) {
  forms.of<SumSequences>(syntax, meaning);
  forms.stores("store", "sum_sequences", SumSequences{});
}

}  // namespace fuseline
