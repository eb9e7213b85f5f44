#include "model/programs/line_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace fuseline {

namespace {

std::string without_spaces(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ') out += c;
  return out;
}

// The letters of rows and of columns in "[M, 3D]".
std::pair<std::string, std::string> letters(const Tensor& t) {
  const std::string shape = without_spaces(t.symbol);
  const std::size_t comma = shape.find(',');
  if (comma == std::string::npos || shape.size() < 5) return {};
  return {shape.substr(1, comma - 1), shape.substr(comma + 1, shape.size() - comma - 2)};
}

// What stands up to "," or "]", without its spaces.
std::string text_ahead(const TokenCursor& cursor) {
  std::string text;
  int depth = 0;
  for (std::size_t i = 0;; ++i) {
    const Token& t = cursor.token(i);
    if (t.kind != TokenKind::name && t.kind != TokenKind::number && t.kind != TokenKind::sign)
      return text;
    if (depth == 0 && (t.text == "," || t.text == "]")) return text;
    if (t.text == "(" || t.text == "[") ++depth;
    if (t.text == ")") --depth;
    text += t.text;
  }
}

void skip_to_end_of_part(TokenCursor& cursor) {
  for (int depth = 0;;) {
    const Token& t = cursor.token();
    if (t.kind != TokenKind::name && t.kind != TokenKind::number && t.kind != TokenKind::sign)
      return;
    if (depth == 0 && (t.text == "," || t.text == "]")) return;
    if (t.text == "(" || t.text == "[") ++depth;
    if (t.text == ")") --depth;
    cursor.next();
  }
}

struct Range {
  bool whole = true;
  std::int64_t begin = 0, end = 0;
  std::int64_t step = 0;  // of every so many
  std::int64_t count = 0;
};

// ":", "M", "2048", "64:128", "0:64 of every 128". A size is held against the tensor's own.
Range read_range(TokenCursor& cursor, const Sizes& sizes, const Tensor& t, bool rows) {
  const std::int64_t own = rows ? t.rows : t.cols;
  const std::string symbol = rows ? letters(t).first : letters(t).second;
  const Position at = cursor.here();
  const std::string ahead = text_ahead(cursor);
  if (ahead == ":" || ahead == symbol || ahead == std::to_string(own)) {
    skip_to_end_of_part(cursor);
    return {};
  }
  const std::int64_t first = sizes.read(cursor);
  if (!cursor.take(":")) {
    if (first == own) return {};
    refuse_at(
        *cursor.source(), at, "shape",
        {.value = ahead,
         .message = fmt::format("{} has {} {}", t.name, own, rows ? "rows" : "columns"),
         .allowed = symbol.empty() ? fmt::format("{}, or a part as 0:{}", own, own)
                                   : fmt::format("{}, {}, or a part as 0:{}", symbol, own, own)});
  }
  Range range{.whole = false, .begin = first, .end = sizes.read(cursor)};
  if (cursor.take_name("of")) {
    if (!rows || !cursor.take_name("every")) cursor.expected("'every', for rows");
    range.step = sizes.read(cursor);
    range.count = range.step > 0 ? own / range.step * (range.end - range.begin) : 0;
    if (cursor.take_name("for")) range.count = sizes.read(cursor);
  }
  const bool bad_step =
      range.step != 0 &&
      (range.step < range.end - range.begin || range.count < 1 ||
       range.begin + (range.count / std::max<std::int64_t>(1, range.end - range.begin) - 1) *
                         range.step >=
           own);
  if (range.end <= range.begin || range.end > own || bad_step)
    refuse_at(*cursor.source(), at, "shape",
              {.value = ahead,
               .message = fmt::format("is no part of the {} {} of {}", own,
                                      rows ? "rows" : "columns", t.name),
               .allowed = fmt::format("0:{}", own)});
  return range;
}

}  // namespace

bool at_operand(const TokenCursor& cursor) {
  const TokenKind kind = cursor.kind();
  return (kind == TokenKind::name || kind == TokenKind::quoted) && cursor.is("[", 1);
}

std::string read_any_name(TokenCursor& cursor, const char* what) {
  if (cursor.kind() != TokenKind::name && cursor.kind() != TokenKind::quoted) cursor.expected(what);
  return std::string(cursor.next().text);
}

Operand read_operand(TokenCursor& cursor, const Graph& graph, const Sizes& sizes) {
  const Position at = cursor.here();
  const std::string name = read_any_name(cursor, "a tensor, as x[M,N]");
  const std::optional<TensorId> id = graph.find_tensor(name);
  if (!id) {
    std::vector<std::string> names;
    for (const Tensor& t : graph.tensors()) names.push_back(t.name);
    refuse_at(*cursor.source(), at, "unknown-tensor",
              {.value = name,
               .message = "there is no such tensor",
               .allowed = names.size() > 12 ? std::string("a declared tensor")
                                            : fmt::format("{}", fmt::join(names, ", ")),
               .nearest = nearest_name(name, names)});
  }
  const Tensor& t = graph.tensor(*id);
  Operand o = graph.whole(*id);
  cursor.need("[");
  const Range rows = read_range(cursor, sizes, t, true);
  cursor.need(",");
  const Range cols = read_range(cursor, sizes, t, false);
  cursor.need("]");
  if (!rows.whole) {
    o.rows = rows.step > 0 ? rows.count : rows.end - rows.begin;
    o.at.begin = rows.begin;
    if (rows.step > 0) o.at = {rows.begin, rows.end - rows.begin, rows.step};
  }
  if (!cols.whole) {
    o.col_begin = cols.begin;
    o.cols = cols.end - cols.begin;
  }
  return o;
}

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

void LineReader::end_arguments() {
  index_arguments();
  refuse_unused();
  cursor_.go_to(end_);
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

void LineReader::index_arguments() {
  if (indexed_) return;
  indexed_ = true;
  const auto at_end = [&] {
    return cursor_.kind() == TokenKind::line_end || cursor_.kind() == TokenKind::end ||
           cursor_.is(")") || cursor_.is("->");
  };
  while (!at_end()) {
    if (!first_) cursor_.need(",");
    first_ = false;
    const Position at = cursor_.here();
    if (cursor_.kind() != TokenKind::name ||
        !(cursor_.is("=", 1) || cursor_.is(",", 1) || cursor_.is(")", 1) || cursor_.is("->", 1) ||
          cursor_.token(1).kind == TokenKind::line_end))
      refuse(at, "arguments",
             {.value = std::string(cursor_.token().text),
              .message = "the line takes no further value or tensor",
              .allowed = "arguments by name, as group = 128"});
    const std::string name(cursor_.next().text);
    Argument a{.at = at, .flag = !cursor_.take("=")};
    a.begin = cursor_.place();
    for (int depth = 0;;) {
      if (depth == 0 && (at_end() || cursor_.is(","))) break;
      if (cursor_.kind() == TokenKind::line_end || cursor_.kind() == TokenKind::end) break;
      if (cursor_.is("(") || cursor_.is("[")) ++depth;
      if (cursor_.is(")") || cursor_.is("]")) --depth;
      cursor_.next();
    }
    a.end = cursor_.place();
    if (!arguments_.emplace(name, a).second)
      refuse(at, "arguments", {.value = name, .message = "is given twice"});
  }
  end_ = cursor_.place();
}

LineReader::Argument* LineReader::argument(std::string_view name) {
  index_arguments();
  asked_.emplace_back(name);
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return nullptr;
  found->second.used = true;
  cursor_.go_to(found->second.begin);
  return &found->second;
}

void LineReader::end_of(const Argument& a) const {
  if (cursor_.place() != a.end) cursor_.expected("the end of the argument");
}

void LineReader::refuse_unused() {
  for (const auto& [name, a] : arguments_) {
    if (a.used) continue;
    refuse(a.at, "arguments",
           {.value = name,
            .message = "the line takes no argument of this name",
            .allowed =
                asked_.empty() ? std::string("none") : fmt::format("{}", fmt::join(asked_, ", ")),
            .nearest = nearest_name(name, asked_)});
  }
}

void LineReader::number(std::string_view name, std::int64_t& n, std::int64_t usual) {
  const Argument* a = argument(name);
  if (a == nullptr) {
    if (usual == kNeeded) {
      cursor_.go_to(end_);
      refuse(cursor_.here(), "arguments",
             {.value = std::string(name),
              .message = "the argument is missing",
              .allowed = fmt::format("{} = a whole number", name)});
    }
    n = usual;
    return;
  }
  n = sizes_.read(cursor_);
  end_of(*a);
}
void LineReader::real(std::string_view name, double& x, double usual) {
  const Argument* a = argument(name);
  x = usual;
  if (a == nullptr) return;
  x = read_real();
  end_of(*a);
}
void LineReader::numbers(std::string_view name, std::vector<std::int64_t>& all) {
  const Argument* a = argument(name);
  all.clear();
  if (a == nullptr) return;
  cursor_.need("[");
  do all.push_back(sizes_.read(cursor_));
  while (cursor_.take(","));
  cursor_.need("]");
  end_of(*a);
}
void LineReader::flag(std::string_view name, bool& on) {
  const Argument* a = argument(name);
  on = a != nullptr;
  if (a != nullptr && !a->flag)
    refuse(a->at, "arguments",
           {.value = std::string(name), .message = "is a flag, without \"=\" and a value"});
}
void LineReader::named(std::string_view name, std::optional<Operand>& o) {
  const Argument* a = argument(name);
  o.reset();
  if (a == nullptr) return;
  o = read_operand(cursor_, graph_, sizes_);
  end_of(*a);
}
void LineReader::named(std::string_view name, std::vector<Operand>& all) {
  const Argument* a = argument(name);
  all.clear();
  if (a == nullptr) return;
  cursor_.need("[");
  do all.push_back(read_operand(cursor_, graph_, sizes_));
  while (cursor_.take(","));
  cursor_.need("]");
  end_of(*a);
}
void LineReader::named(std::string_view name, Value& v) {
  const Argument* a = argument(name);
  v = -1;
  if (a == nullptr) return;
  v = read_value();
  end_of(*a);
}
void LineReader::choice(std::string_view name, int& which,
                        std::span<const std::string_view> words) {
  const Argument* a = argument(name);
  which = 0;
  if (a == nullptr) return;
  const std::vector<std::string> allowed(words.begin(), words.end());
  const Position at = cursor_.here();
  const std::string word = read_any_name(cursor_, "a word");
  for (std::size_t i = 0; i < words.size(); ++i)
    if (word == words[i]) {
      which = static_cast<int>(i);
      return end_of(*a);
    }
  refuse(at, "arguments",
         {.field = std::string(name),
          .value = word,
          .message = "is none of the words",
          .allowed = fmt::format("{}", fmt::join(allowed, ", ")),
          .nearest = nearest_name(word, allowed)});
}
void LineReader::text(std::string_view name, const std::string&,
                      const std::function<void(const std::string&)>& set) {
  const Argument* a = argument(name);
  if (a == nullptr) return;
  const Position at = cursor_.here();
  try {
    set(read_any_name(cursor_, "a name, in quotes where it is no word"));
  } catch (const InputError& e) {
    if (e.problem().line > 0) throw;
    refuse(at, "number-format", e.problem());
  }
  end_of(*a);
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
