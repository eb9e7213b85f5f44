#include "base/toml_nesting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace fuseline {

namespace {

class NestingCheck {
 public:
  NestingCheck(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        skip_text(c);
      } else {
        count(c);
        ++at_;
      }
    }
  }

 private:
  static constexpr int kMostBrackets = 32;
  static constexpr int kMostDots = 16;

  void count(char c) {
    if (c == '\n') ++line_;
    if (c == '[' || c == '{') ++brackets_;
    if ((c == ']' || c == '}') && brackets_ > 0) --brackets_;
    if (c == '.') ++dots_;
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) dots_ = 0;
    if (brackets_ <= kMostBrackets && dots_ <= kMostDots) return;
    throw InputError({.file = file_,
                      .message = "values are nested too deeply",
                      .allowed = fmt::format("at most {} brackets within each other, {} dots in a "
                                             "key",
                                             kMostBrackets, kMostDots),
                      .line = line_});
  }

  // "...", '...', and those of several lines in three quotes. Where the text ends early, the parser
  // says so.
  void skip_text(char quote) {
    const bool tripled = text_.substr(at_, 3) == std::string(3, quote);
    const std::string end(tripled ? 3 : 1, quote);
    at_ += end.size();
    while (at_ < text_.size() && text_.substr(at_, end.size()) != end) {
      if (text_[at_] == '\n') {
        if (!tripled) return;
        ++line_;
      }
      // What an escape stands for ends nothing, except a line.
      const bool escape = quote == '"' && text_.substr(at_, 1) == "\\";
      at_ += escape && text_.substr(at_ + 1, 1) != "\n" ? 2 : 1;
    }
    at_ += end.size();
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1, brackets_ = 0, dots_ = 0;
};

}  // namespace

void check_toml_nesting(std::string_view text, const std::string& file) {
  NestingCheck(text, file).run();
}

}  // namespace fuseline
