#include "sim/gpu/provenance.h"

#include <fmt/format.h>

#include <cctype>
#include <cstddef>

#include "base/toml_file.h"

namespace fuseline {

Provenance read_provenance(const TomlTable& number, const std::vector<std::string>& statuses,
                           const std::vector<std::string>& others) {
  std::vector<std::string> known = {"value", "unit", "source", "date", "status"};
  known.insert(known.end(), others.begin(), others.end());
  number.refuse_other_keys(known);
  Provenance p;
  p.value = number.real("value", {-1e300, 1e300});
  p.unit = number.text("unit");
  p.source = number.text("source");
  p.date = number.text("date");
  if (!is_date(p.date)) {
    number.fail("date", "is not a date", "\"2024\", \"2024-03\" or \"2024-03-18\"");
  }
  p.status = number.word("status", statuses);
  return p;
}

std::string describe(const Provenance& p) {
  return fmt::format("{:.10g} {} ({}, {}, {})", p.value, p.unit, p.source, p.date, p.status);
}

bool is_date(std::string_view text) {
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace fuseline
