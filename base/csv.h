// Comma-separated tables with a header line, as measurements come. Every error names file, line,
// column name and value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

class CsvTable {
 public:
  // Reads the file. InputError: not readable, empty, no data line, a line with more or fewer cells
  // than the header, an unclosed quote.
  explicit CsvTable(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t rows() const { return cells_.size(); }
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] bool has_column(std::string_view column) const;
  // Line of the row in the file, 1-based.
  [[nodiscard]] int line(std::size_t row) const { return lines_[row]; }

  // InputError when the column does not exist (nearest name) or the cell is not what is asked for.
  [[nodiscard]] const std::string& text(std::size_t row, std::string_view column) const;
  [[nodiscard]] std::int64_t whole(std::size_t row, std::string_view column,
                                   std::int64_t least = 0) const;
  [[nodiscard]] double positive(std::size_t row, std::string_view column) const;

  // An InputError about one cell, for checks of the caller.
  [[noreturn]] void fail(std::size_t row, std::string_view column, const std::string& message,
                         const std::string& allowed) const;

 private:
  [[nodiscard]] std::size_t index_of(std::string_view column) const;

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> cells_;
  std::vector<int> lines_;
};

}  // namespace fuseline
