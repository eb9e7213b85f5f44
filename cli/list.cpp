// fuseline list: what the other commands can be asked about.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/table.h"
#include "sim/report/listing.h"

namespace fuseline {

namespace {

// What CSV and JSON keep: "calibrated" says a part of "standing", and a format's text names its
// types.
Listing for_people(Listing l) {
  for (const char* key : {"calibrated", "element", "scale", "source"}) {
    const auto at = std::find(l.keys.begin(), l.keys.end(), key) - l.keys.begin();
    if (at == static_cast<std::ptrdiff_t>(l.keys.size())) continue;
    l.keys.erase(l.keys.begin() + at);
    l.columns.erase(l.columns.begin() + at);
    for (std::vector<std::string>& row : l.rows) row.erase(row.begin() + at);
  }
  return l;
}

// Text columns are broken into lines where the table would be too wide: the last one gets what the
// others leave, and none of the others more than a third of the width.
std::string table_with_text(const Listing& l) {
  const std::size_t last = l.columns.size() - 1;
  std::vector<std::size_t> widths;
  std::size_t left = kTableWidth;
  for (std::size_t c = 0; c < last; ++c) {
    std::size_t width = display_width(l.columns[c].header);
    for (const auto& row : l.rows) width = std::max(width, display_width(row[c]));
    widths.push_back(std::min(width, kTableWidth / 3));
    left -= widths.back() + 2;
  }
  widths.push_back(left);
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : l.rows) {
    const std::size_t first = rows.size();
    for (std::size_t c = 0; c <= last; ++c) {
      const std::vector<std::string> lines = broken(row[c], widths[c]);
      if (rows.size() < first + lines.size()) {
        rows.resize(first + lines.size(), std::vector<std::string>(last + 1));
      }
      for (std::size_t i = 0; i < lines.size(); ++i) rows[first + i][c] = lines[i];
    }
  }
  std::vector<Column> columns;
  for (const ListColumn& column : l.columns)
    columns.push_back({column.header, column.cells == Cells::text ? Align::left : Align::right});
  return format_table(columns, rows);
}

std::string as_csv(const Listing& l) {
  std::string out = fmt::format("{}\n", fmt::join(l.keys, ","));
  for (const auto& row : l.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) out += (c > 0 ? "," : "") + csv_cell(row[c]);
    out += "\n";
  }
  return out;
}

}  // namespace

CommandResult list_command(const Arguments& args) {
  std::vector<std::string> topics;
  std::optional<std::string> format;
  Options options(
      "list",
      "What can be named: models, blocks, gpus, policies, scenarios, distributions, formats, ...",
      {"fuseline list gpus", "fuseline list models --format json"});
  options.positional("TOPIC", "models, blocks, gpus, policies, operators, formats, ...", topics, 1);
  options.words(listing_topics());
  options.text("--format", "table|json|csv", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  const std::vector<std::string>& names = listing_topics();
  if (topics.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "TOPIC",
                      .message = "is missing",
                      .allowed = fmt::format("{}", fmt::join(names, ", "))});
  }
  const std::string& name = parse_word("TOPIC", topics.front(), names);
  const Listing listing = listing_of(name);
  if (chosen == "json") return {listing_json(name, listing), {}, ExitStatus::done};
  if (chosen == "csv") return {as_csv(listing), {}, ExitStatus::done};
  return {table_with_text(for_people(listing)), {}, ExitStatus::done};
}

}  // namespace fuseline
