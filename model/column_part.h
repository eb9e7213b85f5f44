// Some columns of every group of them: a half of each head, its rotated part, every second column.
#pragma once

#include <cstdint>

namespace fuseline {

// In every `group` adjacent columns those at begin, begin + step, ..., `count` of them.
struct ColumnPart {
  std::int64_t group = 0;  // 0: all columns
  std::int64_t begin = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;

  // Columns of the part in `cols` columns, and where column c of the part lies among them.
  [[nodiscard]] std::int64_t cols(std::int64_t all) const { return all / group * count; }
  [[nodiscard]] std::int64_t column(std::int64_t c) const {
    return c / count * group + begin + c % count * step;
  }
  // Whether the groups fill `all` columns and the part lies within a group.
  [[nodiscard]] bool fits(std::int64_t all) const {
    return group > 0 && count > 0 && step > 0 && begin >= 0 && all % group == 0 &&
           begin + (count - 1) * step < group;
  }
  friend bool operator==(const ColumnPart&, const ColumnPart&) = default;
};

}  // namespace fuseline
