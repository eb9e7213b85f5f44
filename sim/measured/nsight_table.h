// The table inside the output of `ncu --csv`, and the numbers and units in it.
#pragma once

#include <string>
#include <vector>

#include "base/csv_text.h"
#include "base/units.h"

namespace fuseline {

struct NsightTable {
  std::string path;
  CsvRecord header;                // a cell in quotes may span lines
  std::vector<CsvRecord> records;  // below it, the raw page's row of units included

  [[nodiscard]] bool has_column(const std::string& name) const;
  // InputError when there is no such column (nearest name).
  [[nodiscard]] std::size_t column(const std::string& name) const;
};

// Lines before the header, lines of the tool ("==PROF== ...") and, where cells stand in quotes,
// what the profiled program printed in between are skipped; a header that comes again too.
// InputError: not readable, UTF-16, no such table in it, no kernel, a record with more or fewer
// cells than the header, an unclosed quote.
NsightTable read_nsight_table(const std::string& path, const std::string& text);

// The largest report that is read: a whole model with all metrics.
inline constexpr Bytes kLargestReport{std::int64_t{256} << 20};  // 256 MiB

// Where a number stands, for messages.
struct NsightCell {
  const std::string& path;
  int line;
  std::string metric;
};

// "1,234.5" with "usecond" or "us" → 1234.5e-6 s; "2.5" with "Mbyte" → 2,500,000 bytes. Prefixes
// are powers of 1000. InputError: not such a number, negative, an unknown unit.
Seconds nsight_time(const std::string& value, const std::string& unit, const NsightCell& cell);
Bytes nsight_bytes(const std::string& value, const std::string& unit, const NsightCell& cell);

}  // namespace fuseline
