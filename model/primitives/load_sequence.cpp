#include "model/primitives/load_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> LoadSequence::uses() const { return {}; }

std::vector<Value> LoadSequence::defines() const { return {out}; }

std::vector<Access> LoadSequence::accesses() const {
  return {{.operand = from, .reach = Reach::sequence_rows, .tokens = tokens}};
}

std::vector<ValueShape> LoadSequence::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols}};
}

std::vector<ColumnRelation> LoadSequence::relations() const { return {}; }

TileDemands LoadSequence::demands() const { return {}; }

bool LoadSequence::check(ShapeCheck& check) const {
  if (tokens < 1 || from.rows * tokens != check.space().rows)
    check.problem(fmt::format("{} has {} rows, not one for every {} of {}", check.name(from),
                              from.rows, tokens, check.space().rows));
  if (check.space().batch > 1 || check.space().heads > 1)
    check.problem(check.name(from) + ": rows of sequences, where rows are those of heads");
  return true;
}

CodeLine LoadSequence::text(const ProgramNames& names) const {
  return {fmt::format("{} = load_sequence {}", names.name(out), names.text(from)),
          fmt::format("row / {}", tokens)};
}

// Each sequence of the tile once.
void LoadSequence::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  const std::int64_t first = tile.area().row_begin;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    if (r > 0 && (first + r) % tokens != 0)
      std::copy_n(m.row(r - 1), m.cols, m.row(r));
    else
      tile.memory().load(from, (first + r) / tokens, range.begin, range.count(), m.row(r));
  }
}

void LoadSequence::epilogue(EpilogueCode& code) const { code.load(out, accesses().front()); }

void LoadSequence::stream(StreamCode& code) const {
  const std::string f = code.parameter(out, "in", accesses().front());
  code.define(out, f,
              fmt::format("load_tile(p.{}, sequence_rows<{}>({}))", f, tokens, code.place_of(out)));
}

namespace {

void syntax(LoadSequence& p, Syntax& line) {
  line.makes(p.out);
  line.word("load_sequence");
  line.operand(p.from);
  line.number("tokens", p.tokens);
  line.remark("row / tokens");
}

void meaning(const LoadSequence& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.from.cols,
             [&](auto r, auto c) { return exact.read(p.from, r / p.tokens, c); });
}

}  // namespace

void lines::load_sequence(LineForms& forms) {
  forms.of<LoadSequence>(syntax, meaning);
  forms.makes("load_sequence", LoadSequence{});
}

}  // namespace fuseline
