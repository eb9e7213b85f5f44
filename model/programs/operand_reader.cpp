#include "model/programs/operand_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/programs/diagnosis.h"

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

}  // namespace fuseline
