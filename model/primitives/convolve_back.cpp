#include "model/primitives/convolve_back.h"

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

std::vector<Value> ConvolveBack::uses() const { return {}; }

std::vector<Value> ConvolveBack::defines() const { return {out}; }

std::vector<Access> ConvolveBack::accesses() const {
  return {
      {.operand = from, .reach = Reach::rows_below, .halo = shape.taps - 1, .tokens = shape.tokens},
      {.operand = weight, .reach = Reach::col_numbers}};
}

std::vector<ValueShape> ConvolveBack::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols}};
}

std::vector<ColumnRelation> ConvolveBack::relations() const { return {}; }

TileDemands ConvolveBack::demands() const { return {}; }

bool ConvolveBack::check(ShapeCheck& check) const {
  const IndexSpace& space = check.space();
  if (!space.columns_resident && !space.rows_resident)
    check.problem("a convolution along rows is no epilogue: it loads rows below its tile",
                  "other-rows");
  if (space.heads > 1) check.problem("a convolution along rows takes no rows of heads");
  if (shape.taps < 1 || shape.tokens < 1 || shape.batch < 1) {
    check.problem("a dimension of the convolution is below 1");
    return true;
  }
  if (shape.batch * shape.tokens != space.rows)
    check.problem(fmt::format("{} rows are no {} sequences of {} tokens", space.rows, shape.batch,
                              shape.tokens));
  check.expect(from, space.rows, from.cols, "gradient of the convolution =");
  check.expect(weight, shape.taps, from.cols, "weight =");
  return true;
}

CodeLine ConvolveBack::text(const ProgramNames& names) const {
  return {fmt::format("{} = convolve_back({}, {})", names.name(out), names.text(from),
                      names.text(weight)),
          fmt::format("{} tokens, {} rows below", shape.taps, shape.taps - 1)};
}

// Piece by piece of the sequences that the tile meets, each with the rows below that it has.
void ConvolveBack::evaluate(TileContext& tile) const {
  Matrix& dx = tile.result(out);
  TileMemory& memory = tile.memory();
  const std::int64_t col = tile.columns(out).begin;
  const std::int64_t halo = shape.taps - 1;
  Matrix taps;
  taps.resize(shape.taps, dx.cols);
  for (std::int64_t j = 0; j < shape.taps; ++j) memory.load(weight, j, col, dx.cols, taps.row(j));
  Matrix rows;
  const std::int64_t first = tile.area().row_begin;
  for (std::int64_t r = 0; r < dx.rows;) {
    const std::int64_t token = (first + r) % shape.tokens;
    const std::int64_t count = std::min(dx.rows - r, shape.tokens - token);
    const std::int64_t held = count + std::min(halo, shape.tokens - token - count);
    rows.resize(held, dx.cols);
    for (std::int64_t i = 0; i < held; ++i)
      memory.load(from, first + r + i, col, dx.cols, rows.row(i));
    for (std::int64_t i = 0; i < count; ++i, ++r) {
      std::fill_n(dx.row(r), dx.cols, 0.0F);
      for (std::int64_t j = 0; j < shape.taps; ++j) {
        if (i + halo - j >= held) continue;
        for (std::int64_t c = 0; c < dx.cols; ++c)
          dx.row(r)[c] += taps.row(j)[c] * rows.row(i + halo - j)[c];
      }
    }
  }
}

void ConvolveBack::epilogue(EpilogueCode& code) const { code.refuse(name); }

void ConvolveBack::stream(StreamCode& code) const {
  FUSELINE_ASSERT(code.each(out) == 8, "a convolution of whole units");
  const Access taps{.operand = weight, .reach = Reach::tile};
  const std::string in = code.parameter(out, "in", accesses().front());
  const std::string w = code.parameter("weight", taps);
  code.step(name);
  code.define(out, fmt::format("convolve_back<{}>(p.{}, p.{}, p.{}, {})", shape.taps, in, w,
                               code.count("tokens", shape.tokens), code.place_of(out)));
}

namespace {

void syntax(ConvolveBack& p, Syntax& line) {
  line.makes(p.out);
  line.word("convolve_back");
  line.open();
  line.operand(p.from);
  line.operand(p.weight);
  convolution_arguments(line, p.shape);
  line.close();
  line.remark(fmt::format("{} rows below", p.shape.taps - 1));
}

void meaning(const ConvolveBack& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.from.cols, [&](auto r, auto c) {
    double sum = 0;
    for (std::int64_t j = 0; j < p.shape.taps; ++j) {
      const std::int64_t below = p.shape.taps - 1 - j;  // rows of the same sequence
      if (r % p.shape.tokens + below < p.shape.tokens)
        sum += exact.read(p.weight, j, c) * exact.read(p.from, r + below, c);
    }
    return sum;
  });
}

}  // namespace

void lines::convolve_back(LineForms& forms) {
  forms.of<ConvolveBack>(syntax, meaning);
  forms.makes("convolve_back", ConvolveBack{});
}

}  // namespace fuseline
