#include "base/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "base/csv_text.h"
#include "base/data_files.h"
#include "base/error.h"

namespace fuseline {

namespace {

// A trace of a thousand blocks with their kernels stays far below.
constexpr Bytes kLargestTable{std::int64_t{64} << 20};  // 64 MiB

}  // namespace

CsvTable::CsvTable(const std::string& path) : path_(path) {
  std::istringstream in(read_input_file(path, kLargestTable));
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty() || text.front() == '#') continue;
    // Of this line alone: a quote that is never closed is an error here, not at the file's end.
    std::vector<std::string> cells = CsvScanner(path, text, line).record().cells;
    if (columns_.empty()) {
      columns_ = std::move(cells);
      continue;
    }
    if (cells.size() != columns_.size()) {
      throw InputError({.file = path,
                        .message = "the line has " + std::to_string(cells.size()) + " cells",
                        .allowed = std::to_string(columns_.size()) + " cells, as the header has",
                        .line = line});
    }
    cells_.push_back(std::move(cells));
    lines_.push_back(line);
  }
  if (columns_.empty()) throw InputError({.file = path, .message = "the file is empty"});
  if (cells_.empty()) {
    throw InputError({.file = path, .message = "the file has a header and no measurement"});
  }
}

bool CsvTable::has_column(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

std::size_t CsvTable::index_of(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) {
    throw InputError({.file = path_,
                      .field = std::string(column),
                      .message = "the header lacks this column",
                      .nearest = nearest_name(column, columns_),
                      .line = 1});
  }
  return static_cast<std::size_t>(found - columns_.begin());
}

void CsvTable::fail(std::size_t row, std::string_view column, const std::string& message,
                    const std::string& allowed) const {
  throw InputError({.file = path_,
                    .field = std::string(column),
                    .value = cells_[row][index_of(column)],
                    .message = message,
                    .allowed = allowed,
                    .line = lines_[row]});
}

const std::string& CsvTable::text(std::size_t row, std::string_view column) const {
  return cells_[row][index_of(column)];
}

std::int64_t CsvTable::whole(std::size_t row, std::string_view column, std::int64_t least) const {
  const std::string& cell = text(row, column);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || value < least) {
    fail(row, column, "is not such a number",
         "a whole number of at least " + std::to_string(least));
  }
  return value;
}

double CsvTable::positive(std::size_t row, std::string_view column) const {
  const std::string& cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value) ||
      value <= 0) {
    fail(row, column, "is not such a number", "a number above 0");
  }
  return value;
}

}  // namespace fuseline
