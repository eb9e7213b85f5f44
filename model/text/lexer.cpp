#include "model/text/lexer.h"

#include <fmt/format.h>

#include <cctype>

namespace fuseline {

namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_name(char c) { return begins_name(c) || is_digit(c); }

char closing(char open) { return open == '(' ? ')' : ']'; }

class Lexer {
 public:
  Lexer(const SourceText& source, std::span<const std::string_view> signs)
      : source_(source), text_(source.text), signs_(signs) {}

  Tokens read() {
    while (at_ < text_.size()) {
      if (line_ > kMostLines)
        fail({.message = "the file has too many lines",
              .allowed = fmt::format("at most {}", kMostLines)});
      if (at_line_start_) begin_line();
      if (at_ < text_.size()) next();
    }
    if (!open_.empty()) {
      source_.fail(open_.back().at,
                   {.value = std::string(open_.back().text),
                    .message = "the bracket is not closed",
                    .allowed = fmt::format("a '{}'", closing(open_.back().text[0]))});
    }
    end_statement();
    while (levels_.size() > 1) close_level();
    add(TokenKind::end, 0);
    return std::move(out_);
  }

 private:
  [[nodiscard]] Position here() const { return {line_, static_cast<int>(at_ - line_begin_) + 1}; }
  [[noreturn]] void fail(InputProblem problem) const { source_.fail(here(), std::move(problem)); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void add(TokenKind kind, std::size_t length) {
    out_.tokens.push_back({kind, text_.substr(at_, length), here()});
    at_ += length;
  }

  void end_line() {
    ++at_;
    ++line_;
    line_begin_ = at_;
    if (open_.empty()) {
      end_statement();
      at_line_start_ = true;
    }
  }

  void end_statement() {
    if (out_.tokens.empty()) return;
    const TokenKind last = out_.tokens.back().kind;
    if (last == TokenKind::line_end || last == TokenKind::indent || last == TokenKind::dedent)
      return;
    out_.tokens.push_back({TokenKind::line_end, {}, out_.tokens.back().at});
  }

  void close_level() {
    levels_.pop_back();
    add(TokenKind::dedent, 0);
  }

  // Indentation counts only on lines with a statement.
  void begin_line() {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] == ' ') ++end;
    const char first = end < text_.size() ? text_[end] : '\n';
    if (first == '\t') {
      at_ = end;
      fail({.message = "a tab before a statement", .allowed = "spaces"});
    }
    const std::size_t width = end - at_;
    at_ = end;
    at_line_start_ = false;
    if (first == '\n' || first == '\r' || first == '#') return;
    if (width > levels_.back()) {
      if (levels_.size() > kDeepestIndentation)
        fail({.message = "too many levels of indentation",
              .allowed = fmt::format("at most {}", kDeepestIndentation)});
      levels_.push_back(width);
      add(TokenKind::indent, 0);
      return;
    }
    while (width < levels_.back()) close_level();
    if (width != levels_.back())
      fail({.message = fmt::format("no statement above begins in column {}", width + 1),
            .allowed = fmt::format("column {}", levels_.back() + 1)});
  }

  void next() {
    if (out_.tokens.size() >= kMostTokens)
      fail({.message = "the file has too many words",
            .allowed = fmt::format("at most {}", kMostTokens)});
    const char c = peek();
    if (c == '\n') return end_line();
    if (c == ' ' || c == '\r' || c == '\t') {
      ++at_;
      return;
    }
    if (c == '#') return remark();
    if (begins_name(c)) return word(TokenKind::name);
    if (is_digit(c)) return number();
    if (c == '"') return quoted();
    sign(c);
  }

  void remark() {
    std::size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) end = text_.size();
    std::string_view words = text_.substr(at_ + 1, end - at_ - 1);
    while (!words.empty() && words.front() == ' ') words.remove_prefix(1);
    while (!words.empty() && (words.back() == ' ' || words.back() == '\r')) words.remove_suffix(1);
    bool alone = true;
    for (std::size_t i = line_begin_; i < at_; ++i) alone = alone && text_[i] == ' ';
    out_.remarks.push_back({words, line_, alone});
    at_ = end;
  }

  void word(TokenKind kind) {
    std::size_t length = 1;
    while (in_name(peek(length))) ++length;
    add(kind, length);
  }

  // Digits, then at most one point and one exponent.
  void number() {
    std::size_t length = 0;
    const auto digits = [&] {
      while (is_digit(peek(length))) ++length;
    };
    digits();
    if (peek(length) == '.' && is_digit(peek(length + 1))) {
      ++length;
      digits();
    }
    if (peek(length) == 'e' || peek(length) == 'E') {
      const std::size_t sign = peek(length + 1) == '-' || peek(length + 1) == '+' ? 2 : 1;
      if (is_digit(peek(length + sign))) {
        length += sign;
        digits();
      }
    }
    if (length > 32)
      fail({.message = "a number of too many digits", .allowed = "at most 32 characters"});
    add(TokenKind::number, length);
  }

  void quoted() {
    const std::size_t end = text_.find_first_of("\"\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n')
      fail({.message = "the quote is not closed in its line", .allowed = "a '\"'"});
    const Position at = here();
    ++at_;
    out_.tokens.push_back({TokenKind::quoted, text_.substr(at_, end - at_), at});
    at_ = end + 1;
  }

  void sign(char c) {
    static constexpr std::string_view two[] = {"->", "==", "!=", "<=", ">="};
    for (const std::string_view s : two)
      if (text_.substr(at_, 2) == s) return add(TokenKind::sign, 2);
    for (const std::string_view s : signs_)
      if (text_.substr(at_, s.size()) == s) return add(TokenKind::sign, s.size());
    if (std::string_view("()[],:=+-*/<>.").find(c) == std::string_view::npos) {
      // A whole character, where it takes several bytes.
      std::size_t length = 1;
      while ((static_cast<unsigned char>(peek(length)) & 0xC0U) == 0x80U) ++length;
      fail({.value = std::string(text_.substr(at_, length)),
            .message = "no word of the language has this character"});
    }
    if (c == '(' || c == '[') {
      if (open_.size() >= kMostBrackets)
        fail({.message = "too many brackets within each other",
              .allowed = fmt::format("at most {}", kMostBrackets)});
      open_.push_back({TokenKind::sign, text_.substr(at_, 1), here()});
    } else if (c == ')' || c == ']') {
      if (open_.empty() || closing(open_.back().text[0]) != c)
        fail({.value = std::string(1, c),
              .message = "closes no bracket",
              .allowed = open_.empty() ? std::string("none here")
                                       : fmt::format("a '{}'", closing(open_.back().text[0]))});
      open_.pop_back();
    }
    add(TokenKind::sign, 1);
  }

  const SourceText& source_;
  std::string_view text_;
  std::span<const std::string_view> signs_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<std::size_t> levels_{0};
  std::vector<Token> open_;
  Tokens out_;
};

}  // namespace

Tokens read_tokens(const SourceText& source, std::span<const std::string_view> signs) {
  return Lexer(source, signs).read();
}

}  // namespace fuseline
