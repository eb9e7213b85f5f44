#include "model/primitives/concat_rows.h"

#include <fmt/format.h>

#include <numeric>
#include <string>

#include "base/error.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"

namespace fuseline {

std::int64_t RowsOfParts::all() const {
  return sequences * std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

RowsOfParts::Place RowsOfParts::place(std::int64_t joint_row) const {
  const std::int64_t joint = all() / sequences;
  std::int64_t within = joint_row % joint;
  for (std::size_t part = 0; part < rows.size(); ++part) {
    if (within < rows[part]) return {part, joint_row / joint * rows[part] + within};
    within -= rows[part];
  }
  FUSELINE_ASSERT(false, "a row of no part");
}

RowsOfParts ConcatRows::rows() const {
  RowsOfParts all{sequences, {}};
  for (const Operand& part : parts) all.rows.push_back(part.rows / sequences);
  return all;
}

std::vector<Value> ConcatRows::uses() const { return {}; }

std::vector<Value> ConcatRows::defines() const { return {out}; }

std::vector<Access> ConcatRows::accesses() const {
  std::vector<Access> all;
  for (const Operand& part : parts) all.push_back({.operand = part, .reach = Reach::tile});
  return all;
}

std::vector<ValueShape> ConcatRows::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, parts.front().cols}};
}

std::vector<ColumnRelation> ConcatRows::relations() const { return {}; }

TileDemands ConcatRows::demands() const { return {}; }

bool ConcatRows::check(ShapeCheck& check) const {
  std::int64_t all = 0;
  for (const Operand& part : parts) {
    all += part.rows;
    if (part.cols != parts.front().cols)
      check.problem(check.name(part) + " is " + std::to_string(part.cols) +
                    " columns wide, the part above it " + std::to_string(parts.front().cols));
    if (sequences < 1 || part.rows % sequences != 0)
      check.problem(check.name(part) + " of " + std::to_string(part.rows) + " rows is no part of " +
                    std::to_string(sequences) + " sequences");
  }
  if (all != check.space().rows)
    check.problem("parts of " + std::to_string(all) + " rows, the index space has " +
                  std::to_string(check.space().rows));
  return true;
}

CodeLine ConcatRows::text(const ProgramNames& names) const {
  std::string all;
  for (const Operand& part : parts) all += (all.empty() ? "" : ", ") + names.text(part);
  return {fmt::format("{} = concat_rows({})", names.name(out), all),
          sequences > 1 ? fmt::format("in each of {} sequences", sequences) : ""};
}

void ConcatRows::evaluate(TileContext& tile) const {
  const RowsOfParts places = rows();
  Matrix& m = tile.result(out);
  const ColumnRange range = tile.columns(out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const RowsOfParts::Place from = places.place(tile.area().row_begin + r);
    tile.memory().load(parts[from.part], from.row, range.begin, m.cols, m.row(r));
  }
}

void ConcatRows::epilogue(EpilogueCode& code) const { code.refuse(name); }

// Every part is loaded where its own rows are.
void ConcatRows::stream(StreamCode& code) const {
  const RowsOfParts all = rows();
  const std::int64_t joint = all.all() / sequences;
  const std::vector<Access> moved = accesses();
  const std::string place = code.here();
  std::string joined;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = code.unique("rows");
    code.line(fmt::format("const auto {} = rows_of_part<{}, {}, {}>({});", part, joint, begin,
                          all.rows[i], place));
    const std::string load =
        fmt::format("load_tile(p.{}, {})", code.parameter("in", moved[i]), part);
    const std::string next = code.unique("joined");
    code.line(fmt::format(
        "const auto {} = {};", next,
        joined.empty() ? load : fmt::format("join_rows({}, {}, {})", part, load, joined)));
    joined = next;
    begin += all.rows[i];
  }
  code.step(name);
  code.name(out, joined);
}

namespace {

void syntax(ConcatRows& p, Syntax& line) {
  line.makes(p.out);
  line.word("concat_rows");
  line.open();
  line.more(p.parts);
  line.number("sequences", p.sequences, 1);
  line.close();
}

void meaning(const ConcatRows& p, Meaning& exact) {
  RowsOfParts places{p.sequences, {}};
  for (const Operand& part : p.parts) places.rows.push_back(part.rows / p.sequences);
  exact.fill(p.out, exact.rows(), p.parts.front().cols, [&](auto r, auto c) {
    const RowsOfParts::Place from = places.place(r);
    return exact.read(p.parts[from.part], from.row, c);
  });
}

}  // namespace

void lines::concat_rows(LineForms& forms) {
  forms.of<ConcatRows>(syntax, meaning);
  forms.makes("concat_rows", ConcatRows{});
}

}  // namespace fuseline
