#include "model/primitives/convolve_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"
#include "model/programs/syntax_arguments.h"

namespace fuseline {

std::vector<Value> ConvolveRows::uses() const { return {}; }

std::vector<Value> ConvolveRows::defines() const { return {out}; }

std::vector<Access> ConvolveRows::accesses() const {
  const std::int64_t halo = shape.taps - 1;
  std::vector<Access> all{
      {.operand = from, .reach = Reach::rows_above, .halo = halo, .tokens = shape.tokens},
      {.operand = weight, .reach = Reach::col_numbers}};
  if (before)
    all.push_back(
        {.operand = *before, .reach = Reach::rows_before, .halo = halo, .tokens = shape.tokens});
  return all;
}

std::vector<ValueShape> ConvolveRows::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols}};
}

std::vector<ColumnRelation> ConvolveRows::relations() const { return {}; }

TileDemands ConvolveRows::demands() const { return {}; }

bool ConvolveRows::check(ShapeCheck& check) const {
  const IndexSpace& space = check.space();
  if (!space.columns_resident && !space.rows_resident)
    check.problem("a convolution along rows is no epilogue: it loads rows above its tile",
                  "other-rows");
  if (space.heads > 1) check.problem("a convolution along rows takes no rows of heads");
  if (shape.taps < 1 || shape.tokens < 1 || shape.batch < 1) {
    check.problem("a dimension of the convolution is below 1");
    return true;
  }
  if (shape.batch * shape.tokens != space.rows)
    check.problem(std::to_string(space.rows) + " rows are no " + std::to_string(shape.batch) +
                  " sequences of " + std::to_string(shape.tokens) + " tokens");
  check.expect(from, space.rows, from.cols, "convolved operand");
  check.expect(weight, shape.taps, from.cols, "weight =");
  if (before) check.expect(*before, shape.batch * (shape.taps - 1), from.cols, "rows before =");
  return true;
}

CodeLine ConvolveRows::text(const ProgramNames& names) const {
  const std::string ahead = before ? ", before " + names.text(*before) : "";
  return {fmt::format("{} = convolve_rows({}, {}{})", names.name(out), names.text(from),
                      names.text(weight), ahead),
          fmt::format("{} tokens, {} rows above", shape.taps, shape.taps - 1)};
}

void ConvolveRows::evaluate(TileContext& tile) const {
  Matrix& y = tile.result(out);
  TileMemory& memory = tile.memory();
  const std::int64_t col = tile.columns(out).begin;
  const std::int64_t halo = shape.taps - 1;
  Matrix taps;
  taps.resize(shape.taps, y.cols);
  for (std::int64_t j = 0; j < shape.taps; ++j) memory.load(weight, j, col, y.cols, taps.row(j));
  Matrix rows;  // of one sequence: `halo` rows above its first row in the tile, then its rows
  const std::int64_t first = tile.area().row_begin;
  for (std::int64_t r = 0; r < y.rows;) {
    const std::int64_t sequence = (first + r) / shape.tokens;
    const std::int64_t token = (first + r) % shape.tokens;
    const std::int64_t count = std::min(y.rows - r, shape.tokens - token);
    rows.resize(halo + count, y.cols);
    for (std::int64_t i = 0; i < halo + count; ++i) {
      const std::int64_t at = token - halo + i;  // in the sequence
      if (at >= 0)
        memory.load(from, sequence * shape.tokens + at, col, y.cols, rows.row(i));
      else if (before)
        memory.load(*before, sequence * halo + halo + at, col, y.cols, rows.row(i));
      else
        std::fill_n(rows.row(i), y.cols, 0.0F);
    }
    for (std::int64_t i = 0; i < count; ++i, ++r) {
      std::fill_n(y.row(r), y.cols, 0.0F);
      for (std::int64_t j = 0; j < shape.taps; ++j)
        for (std::int64_t c = 0; c < y.cols; ++c)
          y.row(r)[c] += taps.row(j)[c] * rows.row(i + j)[c];
    }
  }
}

void ConvolveRows::epilogue(EpilogueCode& code) const { code.refuse(name); }

// The weight's rows are the taps: a tile of its own.
void ConvolveRows::stream(StreamCode& code) const {
  FUSELINE_ASSERT(code.each(out) == 8, "a convolution of whole units");
  const std::vector<Access> moved = accesses();
  const Access taps{.operand = weight, .reach = Reach::tile};
  std::string operands = "p." + code.parameter(out, "in", moved[0]);
  operands += ", p." + code.parameter("weight", taps);
  if (before) operands += ", p." + code.parameter("before", moved[2]);
  code.step(name);
  code.define(out, fmt::format("convolve_rows<{}>({}, p.{}, {})", shape.taps, operands,
                               code.count("tokens", shape.tokens), code.place_of(out)));
}

namespace {

void syntax(ConvolveRows& p, Syntax& line) {
  line.makes(p.out);
  line.word("convolve_rows");
  line.open();
  line.operand(p.from);
  line.operand(p.weight);
  line.named("before", p.before);
  convolution_arguments(line, p.shape);
  line.close();
  line.remark(fmt::format("{} rows above", p.shape.taps - 1));
}

void meaning(const ConvolveRows& p, Meaning& exact) {
  const std::int64_t halo = p.shape.taps - 1;
  exact.fill(p.out, exact.rows(), p.from.cols, [&](auto r, auto c) {
    const std::int64_t sequence = r / p.shape.tokens;
    double sum = 0;
    for (std::int64_t j = 0; j < p.shape.taps; ++j) {
      const std::int64_t at = r % p.shape.tokens - halo + j;  // in the sequence
      const double x = at >= 0    ? exact.read(p.from, sequence * p.shape.tokens + at, c)
                       : p.before ? exact.read(*p.before, sequence * halo + halo + at, c)
                                  : 0.0;
      sum += exact.read(p.weight, j, c) * x;
    }
    return sum;
  });
}

}  // namespace

void lines::convolve_rows(LineForms& forms) {
  forms.of<ConvolveRows>(syntax, meaning);
  forms.makes("convolve_rows", ConvolveRows{});
}

}  // namespace fuseline
