#include "model/primitives/choose_experts_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/expert_routing.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/all_lines.h"
#include "model/programs/meaning.h"
#include "model/programs/syntax_arguments.h"

namespace fuseline {

std::vector<Value> ChooseExpertsGradient::uses() const { return {d_gates, scores, chosen}; }

std::vector<Value> ChooseExpertsGradient::defines() const { return {d_scores}; }

std::vector<Access> ChooseExpertsGradient::accesses() const { return {}; }

std::vector<ValueShape> ChooseExpertsGradient::results(const ValueShapes& made,
                                                       std::int64_t) const {
  return {shape_of(made, scores)};
}

std::vector<ColumnRelation> ChooseExpertsGradient::relations() const { return {}; }

TileDemands ChooseExpertsGradient::demands() const {
  return {.whole_rows = true, .other_columns = true, .chain = {.choices = choice.count}};
}

bool ChooseExpertsGradient::check(ShapeCheck& check) const {
  const ValueShape* s = check.use(scores);
  const ValueShape* gates = check.use(d_gates);
  const ValueShape* experts = check.use(chosen);
  if (s == nullptr || gates == nullptr || experts == nullptr) return false;
  if (!check.space().rows_resident)
    check.problem("the gradient of a choice among all columns needs a full row", "whole-row");
  if (gates->width != choice.count || experts->width != choice.count || choice.count > s->width)
    check.problem(fmt::format("{} gates of {} experts, chosen were {} of {}", gates->width,
                              experts->width, choice.count, s->width));
  return true;
}

CodeLine ChooseExpertsGradient::text(const ProgramNames& names) const {
  return {fmt::format("{} = choose_experts_gradient({}, {}, {})", names.name(d_scores),
                      names.name(d_gates), names.name(scores), names.name(chosen)),
          fmt::format("{} experts a row", choice.count)};
}

void ChooseExpertsGradient::evaluate(TileContext& tile) const {
  const Matrix& x = tile.value(scores);
  const Matrix& dg = tile.value(d_gates);
  const Matrix& c = tile.value(chosen);
  Matrix& dx = tile.result(d_scores);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    std::vector<std::int64_t> experts;
    for (std::int64_t j = 0; j < choice.count; ++j) experts.push_back(std::lround(c.row(r)[j]));
    const std::vector<double> d_gates_of_row(dg.row(r), dg.row(r) + choice.count);
    const std::vector<double> gradients = score_gradients(
        choice, x.cols, [&](std::int64_t e) { return static_cast<double>(x.row(r)[e]); }, experts,
        d_gates_of_row);
    for (std::int64_t e = 0; e < x.cols; ++e)
      dx.row(r)[e] = static_cast<float>(gradients[static_cast<std::size_t>(e)]);
  }
}

void ChooseExpertsGradient::epilogue(EpilogueCode& code) const { code.refuse(name); }

void ChooseExpertsGradient::stream(StreamCode& code) const {
  code.step(name);
  const std::string gradient = code.use(d_gates);
  const std::string x = code.use(scores);
  const std::string experts = code.use(chosen);
  code.define(d_scores,
              fmt::format("score_gradients<threads, {}, GateWeights::{}>({}, {}, {}, {}, {:#.9g}F)",
                          choice.count, name_of(choice.weights), gradient, x, experts,
                          code.place_of(scores), choice.factor));
}

namespace {

void syntax(ChooseExpertsGradient& p, Syntax& line) {
  line.makes(p.d_scores);
  line.word("choose_experts_gradient");
  line.open();
  line.value(p.d_gates);
  line.value(p.scores);
  line.value(p.chosen);
  choice_arguments(line, p.choice);
  line.close();
  line.remark(fmt::format("{} experts a row", p.choice.count));
}

void meaning(const ChooseExpertsGradient& p, Meaning& exact) {
  const ExactMatrix scores = exact.value(p.scores);
  const ExactMatrix d_gates = exact.value(p.d_gates);
  const ExactMatrix chosen = exact.value(p.chosen);
  ExactMatrix d_scores(scores.rows, scores.cols);
  for (std::int64_t r = 0; r < scores.rows; ++r) {
    std::vector<std::int64_t> experts;
    std::vector<double> of_gates;
    for (std::int64_t j = 0; j < p.choice.count; ++j) {
      experts.push_back(std::llround(chosen.at(r, j)));
      of_gates.push_back(d_gates.at(r, j));
    }
    const std::vector<double> of_scores = score_gradients(
        p.choice, scores.cols, [&](std::int64_t e) { return scores.at(r, e); }, experts, of_gates);
    std::ranges::copy(of_scores, &d_scores.at(r, 0));
  }
  exact.make(p.d_scores, std::move(d_scores));
}

}  // namespace

void lines::choose_experts_gradient(LineForms& forms) {
  forms.of<ChooseExpertsGradient>(syntax, meaning);
  forms.makes("choose_experts_gradient", ChooseExpertsGradient{});
}

}  // namespace fuseline
