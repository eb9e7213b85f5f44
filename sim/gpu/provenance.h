// Where a number of a GPU's or an architecture's file comes from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

class TomlTable;

struct Provenance {
  double value = 0;
  std::string unit, source, date, status;
};

// The keys value, unit, source, date and status of `number`, and none beside those in `others`.
// InputError: a key is missing, a date is none, a status is not in `statuses`.
Provenance read_provenance(const TomlTable& number, const std::vector<std::string>& statuses,
                           const std::vector<std::string>& others = {});

// "1980 MHz (source, date, status)".
std::string describe(const Provenance& provenance);

// Year, year-month or year-month-day, as in "2024-03".
bool is_date(std::string_view text);

}  // namespace fuseline
