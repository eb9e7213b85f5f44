// The checker of programs: an abstract execution that tracks the shape of every value. What each
// primitive wants of its values stands in the primitive's file.
#include "model/primitives/shape_check.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace fuseline {

void ShapeCheck::problem(const std::string& text, const char* rule) {
  problems_.push_back({rule, program_.name + ": " + text, in_prologue_, current_});
}

std::vector<ProgramProblem> ShapeCheck::run() {
  std::vector<std::string> of_mainloop;
  space_ = index_space_of(graph_, program_, of_mainloop);
  for (std::string& text : of_mainloop) problems_.push_back({"mainloop", std::move(text)});
  const auto* attention = std::get_if<AttentionMainloop>(&program_.mainloop);
  if (!program_.prologue.empty() && attention == nullptr)
    problem("only an attention mainloop has a prologue");
  in_prologue_ = true;
  for (const Primitive& p : program_.prologue) {
    ++current_;
    check(p);
  }
  in_prologue_ = false;
  current_ = -1;
  if (attention != nullptr) prologue_values(*attention);
  if (attention != nullptr || std::holds_alternative<GemmMainloop>(program_.mainloop) ||
      std::holds_alternative<ScanMainloop>(program_.mainloop))
    values_[0] = {Form::tile, space_.cols};
  if (attention != nullptr) attention_results(*attention);
  std::int64_t rows_of_tile = 0;  // that a line asks for
  bool whole_columns = false;
  for (const Primitive& p : program_.body) {
    ++current_;
    check(p);
    const TileDemands demands = p.demands();
    rows_of_tile = std::max(rows_of_tile, demands.rows_of_tile);
    whole_columns = whole_columns || demands.whole_columns;
    if (whole_columns && rows_of_tile > 0 && rows_of_tile != space_.rows)
      problem("a tile has whole columns for one line and the rows of one sequence for another",
              "whole-column");
  }
  current_ = -1;
  if (stores(program_).empty()) problem("stores nothing", "stores-nothing");
  return std::move(problems_);
}

void ShapeCheck::check(const Primitive& primitive) {
  if (!primitive.check(*this)) return;
  const std::vector<Value> made = primitive.defines();
  const std::vector<ValueShape> shapes = primitive.results(values_, space_.heads);
  for (std::size_t i = 0; i < made.size(); ++i) define(made[i], shapes.at(i));
}

const ValueShape* ShapeCheck::use(Value v) {
  const auto it = values_.find(v);
  if (it != values_.end()) return &it->second;
  problem(text(v) + " is used before it is defined", "undefined-value");
  return nullptr;
}

void ShapeCheck::define(Value v, const ValueShape& shape) {
  if (v < 0 || !values_.emplace(v, shape).second)
    problem(text(v) + " is defined twice", "defined-twice");
}

void ShapeCheck::expect(const Operand& o, std::int64_t rows, std::int64_t cols, const char* what) {
  const std::string wrong = wrong_shape(graph_, o, rows, cols, what);
  if (!wrong.empty()) problem(wrong);
}

void ShapeCheck::tile_operand(const Operand& o, std::int64_t cols) {
  if (o.rows * o.cols == space_.rows * cols && space_.batch > 1) return;  // heads lie side by side
  if (space_.heads > 1 && o.rows * space_.heads == space_.rows && o.cols == space_.heads * cols)
    return;
  if (space_.key_rows > 0 && o.rows == space_.key_rows && o.cols == cols) return;
  expect(o, space_.rows, cols, "tile");
}

bool ShapeCheck::width_known(std::int64_t cols) const {
  if (cols == space_.cols || cols * 2 == space_.cols) return true;
  // The pairs of a pair map's gradient.
  if (space_.interleaved && cols == space_.cols * 2) return true;
  // A part, with the columns that it has; a tile of whole rows has all of them.
  const bool whole = space_.columns_resident || (space_.rows_resident && space_.heads == 1);
  if (whole && cols < space_.cols) return true;
  // A slice that is taken further down: its operands may be loaded before it.
  for (const Primitive& p : program_.body)
    if (const auto slice = p.demands().slice; slice && slice->cols == cols) return true;
  return std::any_of(values_.begin(), values_.end(), [&](const auto& v) {
    return v.second.form == Form::tile && v.second.width == cols;
  });
}

void ShapeCheck::partials(const Operand& o, std::int64_t rows, std::int64_t cols) {
  expect(o, rows, cols, "partials");
  if (graph_.tensor(o.tensor).dtype != Dtype::fp32)
    problem("partials " + name(o) + " are not fp32");
  stored(o);
}

void ShapeCheck::stored(const Operand& o) {
  for (const Operand& other : stored_)
    if (overlap(other, o)) problem(name(o) + " is stored twice", "stored-twice");
  stored_.push_back(o);
}

bool ShapeCheck::in_prologue() const {
  return std::holds_alternative<AttentionMainloop>(program_.mainloop) && !values_.contains(0);
}

bool ShapeCheck::lies_flat(const Operand& o) const {
  const bool loop = std::holds_alternative<RowMainloop>(program_.mainloop) ||
                    std::holds_alternative<StreamMainloop>(program_.mainloop);
  return loop && o.rows == 1 && o.cols == space_.rows;
}

std::int64_t ShapeCheck::score_rows() const {
  const AttentionShape& a = std::get<AttentionMainloop>(program_.mainloop).shape;
  return a.batch * a.heads * a.q_tokens;
}

void ShapeCheck::prologue_values(const AttentionMainloop& m) {
  for (const auto& [value, operand] :
       {std::pair{m.q_value, &m.q}, {m.k_value, &m.k}, {m.v_value, &m.v}}) {
    if (value < 0) continue;
    const ValueShape* s = use(value);
    if (s != nullptr && (s->form != Form::tile || s->width != operand->cols))
      problem(text(value) + " does not have the shape of " + name(*operand));
  }
  values_.clear();  // the mainloop consumes its operands; the body sees its result only
}

void ShapeCheck::attention_results(const AttentionMainloop& m) {
  if (m.log_sum_exp >= 0) define(m.log_sum_exp, {Form::per_score_row, 1});
  if (!m.gradient) return;
  const AttentionGradient& g = *m.gradient;
  expect(g.dy, space_.rows, m.shape.heads * m.shape.v_width(), "gradient of the result");
  expect(g.log_sum_exp, score_rows(), 1, "log-sum-exp");
  expect(g.delta, score_rows(), 1, "delta");
  const std::int64_t kv = (g.per_query_head ? m.shape.heads : m.shape.kv_heads);
  define(g.dk, {Form::tile, kv * m.shape.head_width});
  define(g.dv, {Form::tile, kv * m.shape.v_width()});
}

std::vector<ProgramProblem> program_problems(const Graph& graph, const Program& program) {
  return ShapeCheck(graph, program).run();
}

std::vector<std::string> check_program(const Graph& graph, const Program& program) {
  std::vector<std::string> texts;
  for (ProgramProblem& p : program_problems(graph, program)) texts.push_back(std::move(p.text));
  return texts;
}

}  // namespace fuseline
