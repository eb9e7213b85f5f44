#include "model/primitives/gather.h"

#include <fmt/format.h>

#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::vector<Value> Gather::uses() const { return {}; }

std::vector<Value> Gather::defines() const { return {out}; }

std::vector<Access> Gather::accesses() const {
  return {{.operand = ids, .reach = Reach::row_numbers, .names = from.rows * each},
          {.operand = from, .reach = Reach::gathered_rows, .indices = ids.rows * ids.cols}};
}

std::vector<ValueShape> Gather::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, from.cols}};
}

std::vector<ColumnRelation> Gather::relations() const { return {}; }

TileDemands Gather::demands() const { return {.chain = {.loads = 1}}; }

bool Gather::check(ShapeCheck& check) const {
  check.expect(ids, check.space().rows, 1, "row ids");
  if (each < 1) check.problem(fmt::format("rows have {} places each", each));
  return true;
}

CodeLine Gather::text(const ProgramNames& names) const {
  return {fmt::format("{} = gather {}", names.name(out), names.text(from)),
          "rows " + names.text(ids) + (each > 1 ? fmt::format(" / {}", each) : "")};
}

void Gather::evaluate(TileContext& tile) const {
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    float id = 0;
    tile.memory().load(ids, tile.area().row_begin + r, 0, 1, &id);
    tile.memory().load_row(from, static_cast<std::int64_t>(id) / each, range.begin, m.cols,
                           m.row(r));
  }
}

void Gather::epilogue(EpilogueCode& code) const { code.refuse(name); }

void Gather::stream(StreamCode& code) const {
  code.step("gather");
  const std::string rows = code.parameter(out, "ids", accesses().front());
  const std::string table = code.parameter(out, "in", accesses().back());
  code.define(out, fmt::format("load_tile(p.{}, gather{}({}, p.{}))", table,
                               each > 1 ? fmt::format("<{}>", each) : "", code.here(), rows));
}

namespace {

void syntax(Gather& p, Syntax& line) {
  line.makes(p.out);
  line.word("gather");
  line.open();
  line.operand(p.from);
  line.operand(p.ids);
  line.number("each", p.each, 1);
  line.close();
  line.remark("rows by their numbers");
}

void meaning(const Gather& p, Meaning& exact) {
  exact.fill(p.out, exact.rows(), p.from.cols, [&](auto r, auto c) {
    return exact.read_row(p.from, exact.number(p.ids, r, 0) / p.each, c);
  });
}

}  // namespace

void lines::gather(LineForms& forms) {
  forms.of<Gather>(syntax, meaning);
  forms.makes("gather", Gather{});
}

}  // namespace fuseline
