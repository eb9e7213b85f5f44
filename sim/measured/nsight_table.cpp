#include "sim/measured/nsight_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/data_files.h"
#include "base/error.h"

namespace fuseline {

namespace {

constexpr const char* kAllowedFile = "output of ncu --csv";

// Control characters become spaces, the ends of Windows' lines nothing.
CsvRecord tidy(CsvRecord record) {
  for (std::string& cell : record.cells) {
    std::erase(cell, '\r');
    for (char& c : cell) {
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
  }
  return record;
}

bool is_header(std::string_view line) {
  const bool begins = line.starts_with("\"ID\",") || line.starts_with("ID,");
  return begins && line.find("Kernel Name") != std::string_view::npos;
}

// What the tool says when it has no table to print.
[[noreturn]] void fail_without_table(const std::string& path, std::string_view text) {
  const auto says = [&](const char* part) { return text.find(part) != std::string_view::npos; };
  InputProblem problem{.file = path,
                       .message = "holds no table of kernels by Nsight Compute",
                       .allowed = kAllowedFile};
  if (says("ERR_NVGPUCTRPERM")) {
    problem.message = "Nsight Compute was not allowed to read the GPU's counters";
    problem.allowed = "output of ncu --csv, run with the permission for performance counters";
  } else if (says("No kernels were profiled")) {
    problem.message = "Nsight Compute profiled no kernel";
    problem.allowed = "output of ncu --csv with at least one kernel";
  }
  throw InputError(std::move(problem));
}

void check_encoding(const std::string& path, std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw InputError({.file = path,
                      .message = "is UTF-16, as a redirection of PowerShell writes it",
                      .allowed = "UTF-8, as ncu --log-file writes it"});
  }
}

// Digits with commas before every third of them, as in 1,234,567.8; commas nowhere else.
std::optional<std::string> without_commas(const std::string& text) {
  if (text.find(',') == std::string::npos) return text;
  const std::size_t end = std::min(text.find_first_not_of("0123456789,"), text.size());
  if (end % 4 == 0) return std::nullopt;  // the first group has one to three digits
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool due = i < end && i > 0 && (end - i) % 4 == 0;
    if ((text[i] == ',') != due) return std::nullopt;
    if (text[i] != ',') digits += text[i];
  }
  return digits;
}

double number(const std::string& text, const NsightCell& cell) {
  const std::optional<std::string> plain = without_commas(text);
  double value = 0;
  bool good = plain && !plain->empty();
  if (good) {
    const char* const end = plain->data() + plain->size();
    const auto [stop, error] = std::from_chars(plain->data(), end, value);
    good = error == std::errc() && stop == end && std::isfinite(value) && value >= 0;
  }
  if (good) return value;
  throw InputError({.file = cell.path,
                    .field = cell.metric,
                    .value = text,
                    .message = text.empty() ? "has no value" : "is not such a number",
                    .allowed = "a number of at least 0, as in 1,234.5",
                    .line = cell.line});
}

struct Unit {
  std::string_view name;  // in lower case
  double scale;           // to the base unit
};

constexpr std::array<Unit, 12> kTimeUnits = {{{"nsecond", 1e-9},
                                              {"ns", 1e-9},
                                              {"usecond", 1e-6},
                                              {"us", 1e-6},
                                              {"msecond", 1e-3},
                                              {"ms", 1e-3},
                                              {"second", 1},
                                              {"s", 1},
                                              {"nanosecond", 1e-9},
                                              {"microsecond", 1e-6},
                                              {"millisecond", 1e-3},
                                              {"sec", 1}}};
constexpr std::array<Unit, 10> kByteUnits = {{{"byte", 1},
                                              {"b", 1},
                                              {"kbyte", 1e3},
                                              {"kb", 1e3},
                                              {"mbyte", 1e6},
                                              {"mb", 1e6},
                                              {"gbyte", 1e9},
                                              {"gb", 1e9},
                                              {"tbyte", 1e12},
                                              {"tb", 1e12}}};

template <std::size_t N>
double scale_of(const std::array<Unit, N>& units, const std::string& unit, const char* allowed,
                const NsightCell& cell) {
  std::string lower;
  for (const char c : unit) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& u : units) {
    if (lower == u.name) return u.scale;
  }
  throw InputError({.file = cell.path,
                    .field = cell.metric,
                    .value = unit,
                    .message = unit.empty() ? "has no unit" : "is an unknown unit",
                    .allowed = allowed,
                    .line = cell.line});
}

}  // namespace

bool NsightTable::has_column(const std::string& name) const {
  return std::find(header.cells.begin(), header.cells.end(), name) != header.cells.end();
}

std::size_t NsightTable::column(const std::string& name) const {
  const auto found = std::find(header.cells.begin(), header.cells.end(), name);
  if (found == header.cells.end()) {
    throw InputError({.file = path,
                      .field = name,
                      .message = "the header lacks this column",
                      .nearest = nearest_name(name, header.cells),
                      .line = header.line});
  }
  return static_cast<std::size_t>(found - header.cells.begin());
}

NsightTable read_nsight_table(const std::string& path, const std::string& text) {
  check_encoding(path, text);
  std::string_view view = text;
  if (view.starts_with("\xEF\xBB\xBF")) view.remove_prefix(3);

  CsvScanner scanner(path, view);
  while (!scanner.at_end() && !is_header(scanner.rest_of_line())) scanner.skip_line();
  if (scanner.at_end()) fail_without_table(path, view);
  const bool quoted = scanner.at_quote();
  NsightTable table{.path = path, .header = tidy(scanner.record()), .records = {}};
  while (!scanner.at_end()) {
    const std::string_view line = scanner.rest_of_line();
    const bool of_table = quoted ? scanner.at_quote() : !line.starts_with("==");
    if (!of_table || line.empty() || line == "\r") {
      scanner.skip_line();
      continue;
    }
    CsvRecord record = tidy(scanner.record());
    if (record.cells == table.header.cells) continue;
    if (record.cells.size() != table.header.cells.size()) {
      throw InputError(
          {.file = path,
           .message = "the line has " + std::to_string(record.cells.size()) + " cells",
           .allowed = std::to_string(table.header.cells.size()) + " cells, as the header has",
           .line = record.line});
    }
    table.records.push_back(std::move(record));
  }
  if (table.records.empty()) {
    throw InputError({.file = path,
                      .message = "the table has a header and no kernel",
                      .allowed = "at least one kernel",
                      .line = table.header.line});
  }
  return table;
}

Seconds nsight_time(const std::string& value, const std::string& unit, const NsightCell& cell) {
  const double scale = scale_of(kTimeUnits, unit, "ns, us, ms, s, or nsecond to second", cell);
  return Seconds(number(value, cell) * scale);
}

Bytes nsight_bytes(const std::string& value, const std::string& unit, const NsightCell& cell) {
  const double scale = scale_of(kByteUnits, unit, "byte, Kbyte, Mbyte, Gbyte, Tbyte", cell);
  const double bytes = number(value, cell) * scale;
  if (bytes >= 9e18) throw_count_overflow(ByteUnit::name);
  return Bytes(std::llround(bytes));
}

}  // namespace fuseline
