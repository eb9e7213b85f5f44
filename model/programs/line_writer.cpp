#include "model/programs/line_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace fuseline {

namespace {

// "[M, 3D]" without its brackets, as rows and columns; numbers where the tensor has no letters.
std::pair<std::string, std::string> letters_of(const Tensor& t) {
  std::string shape;
  for (const char c : t.symbol)
    if (c != ' ') shape += c;
  const std::size_t comma = shape.find(',');
  if (comma == std::string::npos || shape.size() < 5)
    return {std::to_string(t.rows), std::to_string(t.cols)};
  return {shape.substr(1, comma - 1), shape.substr(comma + 1, shape.size() - comma - 2)};
}

}  // namespace

std::string name_text(const std::string& name) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  const bool plain = !name.empty() && std::ranges::all_of(name, in_word) &&
                     std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  return plain ? name : "\"" + name + "\"";
}

std::string operand_text(const Graph& graph, const Operand& o) {
  const Tensor& t = graph.tensor(o.tensor);
  auto [rows, cols] = letters_of(t);
  const bool whole_rows = o.at == RowRuns{} && o.rows == t.rows;
  const bool whole_cols = o.col_begin == 0 && o.cols == t.cols;
  if (whole_rows && whole_cols) return fmt::format("{}[{},{}]", name_text(t.name), rows, cols);
  if (o.at.run > 0) {
    rows = fmt::format("{}:{} of every {}", o.at.begin, o.at.begin + o.at.run, o.at.step);
    if (o.at.step <= 0 || o.rows != t.rows / o.at.step * o.at.run)
      rows += fmt::format(" for {}", o.rows);
  } else if (!whole_rows) {
    rows = fmt::format("{}:{}", o.at.begin, o.at.begin + o.rows);
  }
  if (!whole_cols) cols = fmt::format("{}:{}", o.col_begin, o.col_begin + o.cols);
  return fmt::format("{}[{}, {}]", name_text(t.name), rows, cols);
}

void LineWriter::item(const std::string& text) {
  if (!first_) line_.code += ", ";
  if (first_ && spaced_) line_.code += " ";
  line_.code += text;
  first_ = false;
  spaced_ = false;
}

void LineWriter::argument(std::string_view name, const std::string& text) {
  item(fmt::format("{} = {}", name, text));
}

void LineWriter::makes(std::span<Value* const> results) {
  for (const Value* v : results) item(names_.name(*v));
  line_.code += " =";
  first_ = true;
  spaced_ = true;
}

void LineWriter::stores(std::string_view keyword, Operand& to, bool* add) {
  line_.code += fmt::format("{} {} {}", keyword, operand_text(graph_, to),
                            add != nullptr && *add ? "+=" : "=");
  first_ = true;
  spaced_ = true;
}

void LineWriter::word(std::string_view word) {
  line_.code += fmt::format(" {}", word);
  spaced_ = true;
}

void LineWriter::open() {
  line_.code += "(";
  first_ = true;
  spaced_ = false;
}

void LineWriter::close() {
  line_.code += ")";
  first_ = false;
}

void LineWriter::value(Value& v) { item(names_.name(v)); }
void LineWriter::operand(Operand& o) { item(operand_text(graph_, o)); }

void LineWriter::slice(Value& in, std::int64_t& begin, std::int64_t& count) {
  item(fmt::format("{}[:, {}:{}]", names_.name(in), begin, begin + count));
}

void LineWriter::pattern(std::string_view text, std::vector<Value>& in, double* constant) {
  const std::string first = names_.name(in.at(0));
  const std::string second = constant != nullptr ? fmt::format("{}", *constant)
                             : in.size() > 1     ? names_.name(in[1])
                                                 : std::string();
  item(fmt::format(fmt::runtime(text), first, second));
}

void LineWriter::more(std::vector<Operand>& operands) {
  for (Operand& o : operands) operand(o);
}
void LineWriter::more(std::vector<Value>& values) {
  for (Value& v : values) value(v);
}

void LineWriter::number(std::string_view name, std::int64_t& n, std::int64_t usual) {
  if (n != usual) argument(name, std::to_string(n));
}
void LineWriter::real(std::string_view name, double& x, double usual) {
  if (x != usual) argument(name, fmt::format("{}", x));
}
void LineWriter::numbers(std::string_view name, std::vector<std::int64_t>& all) {
  if (!all.empty()) argument(name, fmt::format("[{}]", fmt::join(all, ", ")));
}
void LineWriter::flag(std::string_view name, bool& on) {
  if (on) item(std::string(name));
}
void LineWriter::named(std::string_view name, std::optional<Operand>& o) {
  if (o) argument(name, operand_text(graph_, *o));
}
void LineWriter::named(std::string_view name, std::vector<Operand>& all) {
  if (all.empty()) return;
  std::string text;
  for (const Operand& o : all) text += (text.empty() ? "" : ", ") + operand_text(graph_, o);
  argument(name, "[" + text + "]");
}
void LineWriter::named(std::string_view name, Value& v) {
  if (v >= 0) argument(name, names_.name(v));
}
void LineWriter::choice(std::string_view name, int& which,
                        std::span<const std::string_view> words) {
  if (which != 0) argument(name, std::string(words[static_cast<std::size_t>(which)]));
}
void LineWriter::text(std::string_view name, const std::string& now,
                      const std::function<void(const std::string&)>&) {
  if (!now.empty()) argument(name, "\"" + now + "\"");
}

void LineWriter::space(std::int64_t& rows, std::int64_t& cols) {
  item(fmt::format("[{}, {}]", rows, cols));
}
void LineWriter::named_value_of(Value& v, Operand& o) {
  item((v >= 0 ? names_.name(v) + " of " : "") + operand_text(graph_, o));
}
void LineWriter::makes_some(Value& first, Value& second) {
  if (second >= 0)
    makes(first, second);
  else
    makes(first);
}

}  // namespace fuseline
