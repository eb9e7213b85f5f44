#include "cli/table.h"

#include <algorithm>
#include <numeric>

namespace fuseline {

namespace {

constexpr std::size_t kGap = 2;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width || width == 0) return text;
  std::string out;
  std::size_t taken = 0;
  for (const char c : text) {
    if (!is_continuation(c) && ++taken == width) break;
    out += c;
  }
  return out + "…";
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string fill(width - std::min(width, display_width(text)), ' ');
  return align == Align::left ? text + fill : fill + text;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                    const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) line += std::string(kGap, ' ');
    const std::string cell = c < cells.size() ? cells[c] : std::string();
    line += padded(c == 0 ? shortened(cell, widths[0]) : cell, widths[c], columns[c].align);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string format_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<std::string> headers;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t width = display_width(columns[c].header);
    for (const auto& row : rows) {
      if (c < row.size()) width = std::max(width, display_width(row[c]));
    }
    widths.push_back(width);
    headers.push_back(columns[c].header);
  }
  const std::size_t gaps = kGap * (columns.size() - 1);
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), gaps);
  if (total > kTableWidth) {
    const std::size_t excess = total - kTableWidth;
    constexpr std::size_t kLeastFirst = 8;
    widths[0] = widths[0] > excess + kLeastFirst ? widths[0] - excess : kLeastFirst;
  }
  std::string out = line_of(headers, columns, widths);
  std::size_t rule = gaps;
  for (const std::size_t w : widths) rule += w;
  for (std::size_t i = 0; i < rule; ++i) out += "─";
  out += "\n";
  for (const auto& row : rows) out += line_of(row, columns, widths);
  return out;
}

std::string wrap(const std::string& text, const std::string& indent) {
  const std::vector<std::string> lines = broken(text, kTableWidth - display_width(indent));
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? indent : "") + lines[i] + "\n";
  return out;
}

}  // namespace fuseline
