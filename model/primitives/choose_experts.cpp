#include "model/primitives/choose_experts.h"

#include <fmt/format.h>

#include <utility>
#include "model/expert_routing.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"
#include "model/programs/syntax_arguments.h"

namespace fuseline {

std::vector<Value> ChooseExperts::uses() const { return {scores}; }

std::vector<Value> ChooseExperts::defines() const { return {gates, chosen}; }

std::vector<Access> ChooseExperts::accesses() const { return {}; }

std::vector<ValueShape> ChooseExperts::results(const ValueShapes&, std::int64_t) const {
  return {{Form::tile, choice.count}, {Form::tile, choice.count}};
}

std::vector<ColumnRelation> ChooseExperts::relations() const { return {}; }

TileDemands ChooseExperts::demands() const {
  return {.whole_rows = true, .other_columns = true, .chain = {.choices = choice.count}};
}

bool ChooseExperts::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(scores);
  if (s == nullptr) return false;
  if (!check.space().rows_resident)
    check.problem("a choice among all columns needs a full row, but tiles hold a part of it",
                  "whole-row");
  if (choice.count < 1 || choice.count > s->width)
    check.problem(fmt::format("{} of {} columns are chosen", choice.count, s->width));
  return true;
}

CodeLine ChooseExperts::text(const ProgramNames& names) const {
  return {fmt::format("{}, {} = choose_experts({})", names.name(gates), names.name(chosen),
                      names.name(scores)),
          fmt::format("{} largest{}", choice.count,
                      choice.loads.groups.empty() ? "" : ", loads assumed")};
}

void ChooseExperts::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(scores);
  Matrix& g = tile.result(gates);
  Matrix& c = tile.result(chosen);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const RoutedRow row = route_row(choice, tile.area().row_begin + r, x.cols, [&](std::int64_t e) {
      return static_cast<double>(x.row(r)[e]);
    });
    for (std::size_t j = 0; j < row.experts.size(); ++j) {
      g.row(r)[j] = static_cast<float>(row.gates[j]);
      c.row(r)[j] = static_cast<float>(row.experts[j]);
    }
  }
}

void ChooseExperts::epilogue(EpilogueCode& code) const { code.refuse(name); }

void ChooseExperts::stream(StreamCode& code) const {
  code.step("choose_experts");
  const std::string x = code.use(scores);
  const bool assumed = !choice.loads.groups.empty();
  const std::string groups =
      assumed ? fmt::format(", p.{}", code.row_groups(gates, choice.loads.groups)) : "";
  const std::string row = code.unique("routed");
  code.line(fmt::format("const auto {} = {}<threads, {}, GateWeights::{}>({}, {}, {:#.9g}F{});",
                        row, assumed ? "choose_by_pattern" : "choose_largest", choice.count,
                        name_of(choice.weights), x, code.place_of(scores), choice.factor, groups));
  // A row of one column is one number, as everywhere in a program.
  const auto columns = [&](const char* of) {
    return choice.count > 1
               ? fmt::format("{}.{}", row, of)
               : fmt::format("only_column<threads>({}.{}, {})", row, of, code.place_of(scores));
  };
  code.name(gates, columns("gates"));
  code.name(chosen, columns("chosen"));
}

namespace {

void syntax(ChooseExperts& p, Syntax& line) {
  line.makes(p.gates, p.chosen);
  line.word("choose_experts");
  line.open();
  line.value(p.scores);
  choice_arguments(line, p.choice);
  line.close();
  line.remark(fmt::format("{} largest{}", p.choice.count,
                          p.choice.loads.groups.empty() ? "" : ", loads assumed"));
}

void meaning(const ChooseExperts& p, Meaning& exact) {
  const ExactMatrix scores = exact.value(p.scores);
  ExactMatrix gates(scores.rows, p.choice.count), chosen(scores.rows, p.choice.count);
  for (std::int64_t r = 0; r < scores.rows; ++r) {
    const RoutedRow row =
        route_row(p.choice, r, scores.cols, [&](std::int64_t e) { return scores.at(r, e); });
    for (std::int64_t j = 0; j < p.choice.count; ++j) {
      gates.at(r, j) = row.gates[static_cast<std::size_t>(j)];
      chosen.at(r, j) = static_cast<double>(row.experts[static_cast<std::size_t>(j)]);
    }
  }
  exact.make(p.gates, std::move(gates));
  exact.make(p.chosen, std::move(chosen));
}

}  // namespace

void lines::choose_experts(LineForms& forms) {
  forms.of<ChooseExperts>(syntax, meaning);
  forms.makes("choose_experts", ChooseExperts{});
}

}  // namespace fuseline
