// Walks through the words of a text: what every parser of our languages asks and takes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/lexer.h"

namespace fuseline {

class TokenCursor {
 public:
  // `words` are those of the language itself, which nothing can be called by; they must outlive it.
  // `signs`: as read_tokens() takes them.
  TokenCursor(std::shared_ptr<const SourceText> source, std::span<const std::string_view> words,
              std::span<const std::string_view> signs = {});

  [[nodiscard]] const std::shared_ptr<const SourceText>& source() const { return source_; }
  [[nodiscard]] const Token& token(std::size_t ahead = 0) const;
  [[nodiscard]] TokenKind kind() const { return token().kind; }
  [[nodiscard]] Position here() const { return token().at; }
  [[nodiscard]] const Token& last() const { return read_.tokens[at_ - 1]; }  // the one taken last
  [[nodiscard]] bool is(std::string_view sign, std::size_t ahead = 0) const;
  [[nodiscard]] bool is_name(std::string_view word) const;
  [[nodiscard]] bool is_free_name(std::size_t ahead = 0) const;  // and no word of the language

  // Where it is among the tokens, and back to such a place.
  [[nodiscard]] std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }

  // The token, and on to the next.
  const Token& next() { return read_.tokens[at_++]; }
  bool take(std::string_view sign);
  bool take_name(std::string_view word);
  // InputError at this place where it is something else; `what` is said to be allowed.
  void need(std::string_view sign);
  std::string need_name(const char* what);
  void need_line_end();
  [[noreturn]] void expected(const std::string& what) const;
  [[noreturn]] void fail(Position at, InputProblem problem) const;

  // Remarks above the line that were not taken yet, those behind others among them: none is lost.
  // `of_file`: only as far as the first empty line.
  std::vector<std::string> remarks_above(int line, bool of_file = false);
  // The one behind the line's statement.
  std::string remark_behind(int line);

 private:
  [[nodiscard]] std::string found() const;

  std::shared_ptr<const SourceText> source_;
  std::span<const std::string_view> words_;
  Tokens read_;
  std::size_t at_ = 0;
  std::size_t next_remark_ = 0;
};

}  // namespace fuseline
