#include "model/text/token_cursor.h"

#include <algorithm>
#include <utility>

namespace fuseline {

TokenCursor::TokenCursor(std::shared_ptr<const SourceText> source,
                         std::span<const std::string_view> words,
                         std::span<const std::string_view> signs)
    : source_(std::move(source)), words_(words), read_(read_tokens(*source_, signs)) {}

const Token& TokenCursor::token(std::size_t ahead) const {
  return read_.tokens[std::min(at_ + ahead, read_.tokens.size() - 1)];
}

bool TokenCursor::is(std::string_view sign, std::size_t ahead) const {
  return token(ahead).kind == TokenKind::sign && token(ahead).text == sign;
}

bool TokenCursor::is_name(std::string_view word) const {
  return kind() == TokenKind::name && token().text == word;
}

bool TokenCursor::is_free_name(std::size_t ahead) const {
  return token(ahead).kind == TokenKind::name &&
         std::find(words_.begin(), words_.end(), token(ahead).text) == words_.end();
}

std::string TokenCursor::found() const {
  switch (kind()) {
    case TokenKind::line_end:
      return "the end of the line";
    case TokenKind::indent:
      return "a line further in";
    case TokenKind::dedent:
      return "a line further out";
    case TokenKind::end:
      return "the end of the text";
    case TokenKind::name:
    case TokenKind::number:
    case TokenKind::quoted:
    case TokenKind::sign:
      break;
  }
  return "'" + std::string(token().text) + "'";
}

void TokenCursor::fail(Position at, InputProblem problem) const {
  source_->fail(at, std::move(problem));
}

void TokenCursor::expected(const std::string& what) const {
  fail(here(), {.message = "found " + found(), .allowed = what});
}

bool TokenCursor::take(std::string_view sign) {
  if (!is(sign)) return false;
  ++at_;
  return true;
}

bool TokenCursor::take_name(std::string_view word) {
  if (!is_name(word)) return false;
  ++at_;
  return true;
}

void TokenCursor::need(std::string_view sign) {
  if (!take(sign)) expected("'" + std::string(sign) + "'");
}

std::string TokenCursor::need_name(const char* what) {
  if (kind() != TokenKind::name) expected(what);
  if (!is_free_name())
    fail(here(), {.value = std::string(token().text),
                  .message = "is a word of the language",
                  .allowed = std::string(what) + " of another name"});
  return std::string(next().text);
}

void TokenCursor::need_line_end() {
  if (kind() != TokenKind::line_end) expected("the end of the line");
  ++at_;
}

std::vector<std::string> TokenCursor::remarks_above(int line, bool of_file) {
  std::vector<std::string> lines;
  int before = 0;
  while (next_remark_ < read_.remarks.size() && read_.remarks[next_remark_].line < line) {
    const Remark& remark = read_.remarks[next_remark_];
    if (of_file && before > 0 && remark.line > before + 1) break;
    before = remark.line;
    lines.emplace_back(remark.text);
    ++next_remark_;
  }
  return lines;
}

std::string TokenCursor::remark_behind(int line) {
  if (next_remark_ >= read_.remarks.size()) return {};
  const Remark& remark = read_.remarks[next_remark_];
  if (remark.line != line || remark.alone) return {};
  ++next_remark_;
  return std::string(remark.text);
}

}  // namespace fuseline
