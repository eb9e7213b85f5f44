// Text tables for a terminal of 100 columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/wrap.h"

namespace fuseline {

inline constexpr std::size_t kTableWidth = 100;

enum class Align { left, right };

struct Column {
  std::string header;
  Align align = Align::right;
};

// Columns as wide as their widest cell, two spaces between them, a rule under the header. The first
// column is shortened (with "…") when the table would be wider than kTableWidth.
std::string format_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows);

// Breaks at spaces so that no line is longer than kTableWidth; continued lines start with `indent`.
std::string wrap(const std::string& text, const std::string& indent = "  ");

}  // namespace fuseline
