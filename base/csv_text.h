// Comma-separated text: cells as they are written, and records as they are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

// A cell, in quotes where it holds a comma, a quote or a line break, and where it holds a "#": a
// line that begins with one is a remark (base/csv.h).
std::string csv_cell(const std::string& text);

struct CsvRecord {
  int line = 0;  // of its first character, 1-based
  std::vector<std::string> cells;
};

// Walks through a text by lines and by records. A cell may stand in double quotes, where "" means
// one quote and a line break belongs to the cell:
//   a,"b,c",d  ->  a | b,c | d
class CsvScanner {
 public:
  // `path` is for messages; `line` is the number of the text's first line. Both texts must outlive
  // the scanner.
  CsvScanner(const std::string& path, std::string_view text, int line = 1)
      : path_(path), text_(text), line_(line) {}

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] bool at_quote() const { return !at_end() && text_[at_] == '"'; }
  [[nodiscard]] std::string_view rest_of_line() const;
  void skip_line();
  // InputError: an unclosed quote.
  CsvRecord record();

 private:
  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
};

}  // namespace fuseline
