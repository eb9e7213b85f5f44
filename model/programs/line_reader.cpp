#include "model/programs/line_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace fuseline {

void LineReader::refuse(Position at, const char* rule, InputProblem problem) const {
  refuse_at(*cursor_.source(), at, rule, std::move(problem));
}

void LineReader::begin(LineHead head, bool mainloop) {
  head_ = std::move(head);
  mainloop_ = mainloop;
  made_.clear();
  first_ = true;
  indexed_ = false;
  arguments_.clear();
  asked_.clear();
}

void LineReader::finish() {
  end_arguments();
  cursor_.need_line_end();
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const auto& [name, at] = head_.results[i];
    if (!values_.known.emplace(name, made_[i]).second)
      refuse(at, "defined-twice",
             {.value = name,
              .message = "a line above makes a value of this name",
              .allowed = "another name"});
    values_.names.resize(std::max(values_.names.size(), static_cast<std::size_t>(made_[i]) + 1));
    values_.names[static_cast<std::size_t>(made_[i])] = name;
  }
}

Value LineReader::fresh(std::size_t result) {
  if (mainloop_ && result == 0) return 0;
  Value next = static_cast<Value>(values_.names.size());
  for (const Value v : made_) next = std::max(next, v + 1);
  return next;
}

void LineReader::makes(std::span<Value* const> results) {
  if (results.size() != head_.results.size())
    refuse(head_.at, "results",
           {.message = fmt::format("the line makes {} value{}, not {}", results.size(),
                                   results.size() == 1 ? "" : "s", head_.results.size()),
            .allowed = fmt::format("{} name{} ahead of \"=\"", results.size(),
                                   results.size() == 1 ? "" : "s")});
  for (std::size_t i = 0; i < results.size(); ++i) {
    *results[i] = fresh(i);
    made_.push_back(*results[i]);
  }
  first_ = true;
}

void LineReader::makes_some(Value& first, Value& second) {
  if (head_.results.size() == 2) return makes(first, second);
  second = -1;
  makes(first);
}

void LineReader::stores(std::string_view keyword, Operand& to, bool* add) {
  to = head_.stored;
  if (head_.add && add == nullptr)
    refuse(head_.at, "arguments",
           {.value = "+=", .message = fmt::format("{} does not add", keyword), .allowed = "="});
  if (add != nullptr) *add = head_.add;
  first_ = true;
}

void LineReader::separate() {
  if (!first_) cursor_.need(",");
  first_ = false;
}

void LineReader::word(std::string_view word) {
  if (!cursor_.take_name(word)) cursor_.expected("'" + std::string(word) + "'");
}
void LineReader::open() {
  cursor_.need("(");
  first_ = true;
}
void LineReader::close() {
  end_arguments();
  cursor_.need(")");
  indexed_ = false;
  arguments_.clear();
  first_ = false;
}

Value LineReader::read_value() {
  const Position at = cursor_.here();
  const std::string name = read_any_name(cursor_, "the name of a value");
  const auto found = values_.known.find(name);
  if (found != values_.known.end()) return found->second;
  if (values_.spoilt.contains(name)) throw RefusedLine({});
  std::vector<std::string> names;
  for (const auto& [known, v] : values_.known) names.push_back(known);
  refuse(at, "undefined-value",
         {.value = name,
          .message = "no line above makes this value",
          .allowed =
              names.empty() ? std::string("none yet") : fmt::format("{}", fmt::join(names, ", ")),
          .nearest = nearest_name(name, names)});
}

void LineReader::value(Value& v) {
  separate();
  v = read_value();
}
void LineReader::operand(Operand& o) {
  separate();
  if (!at_operand(cursor_)) cursor_.expected("a tensor, as x[M,N]");
  o = read_operand(cursor_, graph_, sizes_);
}
void LineReader::slice(Value& in, std::int64_t& begin, std::int64_t& count) {
  in = read_value();
  cursor_.need("[");
  cursor_.need(":");
  cursor_.need(",");
  begin = sizes_.read(cursor_);
  cursor_.need(":");
  const Position at = cursor_.here();
  count = sizes_.read(cursor_) - begin;
  if (count < 1) refuse(at, "shape", {.message = "the range of columns is empty"});
  cursor_.need("]");
  first_ = false;
}

double LineReader::read_real() {
  const bool negative = cursor_.take("-");
  double value = 0;
  if (cursor_.take_name("inf")) {
    value = std::numeric_limits<double>::infinity();
  } else {
    if (cursor_.kind() != TokenKind::number) cursor_.expected("a number");
    const std::string_view text = cursor_.next().text;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return negative ? -value : value;
}

void LineReader::pattern(std::string_view text, std::vector<Value>& in, double* constant) {
  std::size_t placed = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
    } else if (text.substr(i, 2) == "{}") {
      if (placed < in.size())
        in[placed] = read_value();
      else
        *constant = read_real();
      ++placed;
      i += 2;
    } else if (std::isalnum(static_cast<unsigned char>(text[i])) != 0) {
      std::size_t end = i;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
      const std::string_view word = text.substr(i, end - i);
      if (cursor_.token().text != word) cursor_.expected("'" + std::string(word) + "'");
      cursor_.next();
      i = end;
    } else {
      cursor_.need(text.substr(i, 1));
      ++i;
    }
  }
  first_ = false;
}

void LineReader::more(std::vector<Operand>& operands) {
  operands.clear();
  for (;;) {
    const std::size_t place = cursor_.place();
    if (!first_ && !cursor_.take(",")) return;
    if (!at_operand(cursor_)) return cursor_.go_to(place);
    cursor_.go_to(place);
    Operand o;
    operand(o);
    operands.push_back(o);
  }
}
void LineReader::more(std::vector<Value>& values) {
  values.clear();
  while (cursor_.is(",") && cursor_.token(1).kind == TokenKind::name && !cursor_.is("=", 2)) {
    Value v = 0;
    value(v);
    values.push_back(v);
  }
}

void LineReader::transposed(bool& on) { on = cursor_.take("ᵀ") || cursor_.take("'"); }
void LineReader::times() {
  if (!cursor_.take("·") && !cursor_.take("@")) cursor_.expected("'·' or '@'");
  first_ = true;
}
void LineReader::space(std::int64_t& rows, std::int64_t& cols) {
  separate();
  cursor_.need("[");
  rows = sizes_.read(cursor_);
  cursor_.need(",");
  cols = sizes_.read(cursor_);
  cursor_.need("]");
}
void LineReader::named_value_of(Value& v, Operand& o) {
  v = -1;
  if (cursor_.is("[", first_ ? 1 : 2)) return operand(o);
  value(v);
  word("of");
  if (!at_operand(cursor_)) cursor_.expected("a tensor, as x[M,N]");
  o = read_operand(cursor_, graph_, sizes_);
}

}  // namespace fuseline
