#include "model/primitives/mask.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "model/operators/support/heads.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"
#include "model/programs/syntax_arguments.h"

namespace fuseline {

std::vector<Value> Mask::uses() const { return {in}; }

std::vector<Value> Mask::defines() const { return {out}; }

std::vector<Access> Mask::accesses() const { return {}; }

std::vector<ValueShape> Mask::results(const ValueShapes& made, std::int64_t) const {
  return {shape_of(made, in)};
}

std::vector<ColumnRelation> Mask::relations() const { return {{in, out}}; }

TileDemands Mask::demands() const { return {.elementwise = true}; }

bool Mask::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(in);
  if (s == nullptr) return false;
  const std::int64_t rows = shape.batch * shape.heads * shape.q_tokens;
  if (s->form != Form::tile || rows != check.space().rows)
    check.problem(fmt::format("a mask of {} x {} x {} scores a key on {} rows", shape.batch,
                              shape.heads, shape.q_tokens, check.space().rows));
  if (s->width > shape.kv_tokens || (shape.causal && s->width < shape.q_tokens))
    check.problem(fmt::format("a mask of {} queries and {} keys on {} columns", shape.q_tokens,
                              shape.kv_tokens, s->width));
  return true;
}

CodeLine Mask::text(const ProgramNames& names) const {
  return {fmt::format("{} = mask({})", names.name(out), names.name(in)), "hidden keys become -inf"};
}

void Mask::evaluate(TileContext& tile) const {
  // Rows are (b·H + h)·T + t, columns the keys.
  const Matrix& x = tile.value(in);
  const ColumnRange range = tile.columns(in);
  Matrix& to = tile.result(out);
  to.data = x.data;
  for (std::int64_t r = 0; r < to.rows; ++r) {
    const std::int64_t t = (tile.area().row_begin + r) % shape.q_tokens;
    const reference::Seen seen = reference::visible(shape, tile.width(in), t);
    for (std::int64_t c = 0; c < to.cols; ++c) {
      const std::int64_t key = range.begin + c;
      if (key < seen.begin || key >= seen.end)
        to.row(r)[c] = -std::numeric_limits<float>::infinity();
    }
  }
}

void Mask::epilogue(EpilogueCode& code) const { code.refuse(name); }

void Mask::stream(StreamCode& code) const {
  const std::string f = code.visible(out, shape, code.cols(in));
  const std::string x = code.use(in);
  code.step("mask");
  code.define(out, fmt::format("mask({}, p.{}, {})", x, f, code.here()));
}

namespace {

void syntax(Mask& p, Syntax& line) {
  line.makes(p.out);
  line.word("mask");
  line.open();
  line.value(p.in);
  attention_arguments(line, p.shape);
  line.close();
  line.remark("hidden keys become -inf");
}

void meaning(const Mask& p, Meaning& exact) {
  const ExactMatrix scores = exact.value(p.in);
  exact.fill(p.out, scores.rows, scores.cols, [&](auto r, auto c) {
    const reference::Seen seen = reference::visible(p.shape, scores.cols, r % p.shape.q_tokens);
    return c >= seen.begin && c < seen.end ? scores.at(r, c)
                                           : -std::numeric_limits<double>::infinity();
  });
}

}  // namespace

void lines::mask(LineForms& forms) {
  forms.of<Mask>(syntax, meaning);
  forms.makes("mask", Mask{});
}

}  // namespace fuseline
