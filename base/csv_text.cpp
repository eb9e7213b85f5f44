#include "base/csv_text.h"

#include "base/error.h"

namespace fuseline {

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"#\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string_view CsvScanner::rest_of_line() const {
  return text_.substr(at_, text_.find('\n', at_) - at_);
}

void CsvScanner::skip_line() {
  const std::size_t end = text_.find('\n', at_);
  at_ = end == std::string_view::npos ? text_.size() : end + 1;
  ++line_;
}

CsvRecord CsvScanner::record() {
  CsvRecord out{.line = line_, .cells = {""}};
  bool quoted = false;
  while (!at_end()) {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (quoted && c == '"' && at_quote()) {
      out.cells.back() += text_[at_++];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.cells.emplace_back();
    } else if (c == '\n' && !quoted) {
      break;
    } else {
      out.cells.back() += c;
    }
  }
  if (quoted) {
    throw InputError(
        {.file = path_, .message = "a quote is opened and never closed", .line = out.line});
  }
  return out;
}

}  // namespace fuseline
