// Words of our languages: the languages of blocks and of programs share them. Statements end with
// their line, and what belongs together is indented, as in Python; within brackets a line break
// means nothing. "#" begins a remark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/source_text.h"

namespace fuseline {

enum class TokenKind : std::uint8_t {
  name,      // letters, digits and "_", not beginning with a digit
  number,    // 12, 0.5, 1e-6
  quoted,    // "text", without its quotes
  sign,      // ( ) [ ] , : = + - * / -> == != < <= > >= .
  line_end,  // of a statement
  indent,    // the next line is further in
  dedent,    // one level further out
  end,       // of the text
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // part of the source
  Position at;
};

// A remark on a line of its own, or behind a statement.
struct Remark {
  std::string_view text;  // without "#" and the spaces around it
  int line = 0;
  bool alone = false;
};

struct Tokens {
  std::vector<Token> tokens;  // the last one is `end`
  std::vector<Remark> remarks;
};

// The limits that make a nonsense file an error at once.
inline constexpr int kMostLines = 20'000;
inline constexpr std::size_t kMostTokens = 1'000'000;
inline constexpr int kDeepestIndentation = 16;
inline constexpr int kMostBrackets = 32;  // within each other

// InputError: a character that no word has, a tab before a statement, an indentation that no line
// around has, a bracket or a quote that is not closed, more than the limits. `source` must outlive
// the result. `signs`: further characters that are signs in that language.
Tokens read_tokens(const SourceText& source, std::span<const std::string_view> signs = {});

}  // namespace fuseline
