#include "gui/model/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/json_text.h"

namespace fuseline::gui {

namespace {

struct CsvCell {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const std::string& text) const { return csv_cell(text); }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const {
    return std::isfinite(number) ? fmt::format("{}", number) : "";
  }
};

struct JsonCell {
  nlohmann::ordered_json operator()(std::monostate) const { return nullptr; }
  nlohmann::ordered_json operator()(const std::string& text) const { return text; }
  nlohmann::ordered_json operator()(std::int64_t number) const { return number; }
  nlohmann::ordered_json operator()(double number) const {
    return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json();
  }
};

// What rows are about, where the table has no column of that name.
using AboutColumn = std::pair<const char*, Cell (*)(const Subject&)>;
const std::vector<AboutColumn>& about_columns() {
  static const std::vector<AboutColumn> all = {
      {"model", [](const Subject& s) { return Cell(s.model); }},
      {"gpu", [](const Subject& s) { return Cell(s.gpu); }},
      {"machine", [](const Subject& s) { return Cell(s.machine); }},
      {"phase", [](const Subject& s) { return Cell(s.phase); }},
      {"batch", [](const Subject& s) { return s.batch > 0 ? Cell(s.batch) : Cell(); }},
      {"seq", [](const Subject& s) { return s.seq > 0 ? Cell(s.seq) : Cell(); }},
      {"context", [](const Subject& s) { return s.context > 0 ? Cell(s.context) : Cell(); }},
      {"formats", [](const Subject& s) { return Cell(s.formats); }},
      {"policy", [](const Subject& s) { return Cell(s.policy); }},
      {"source", [](const Subject& s) { return Cell(s.source); }}};
  return all;
}

// The table with its subjects as columns.
Table with_subjects(const Table& table) {
  if (table.about.empty()) return table;
  FUSELINE_ASSERT(table.about.size() == table.rows.size(), table.name);
  Table out = table;
  for (const auto& [name, cell_of] : about_columns()) {
    if (std::ranges::find(table.columns, name) != table.columns.end()) continue;
    out.columns.emplace_back(name);
    for (std::size_t r = 0; r < out.rows.size(); ++r)
      out.rows[r].push_back(cell_of(table.about[r]));
  }
  return out;
}

}  // namespace

void add_row(Table& table, std::vector<Cell> cells, const Subject& about, const Subject* base) {
  for (std::size_t c = 0; base != nullptr && c < table.columns.size(); ++c) {
    if (compares(table.columns[c]) && !std::holds_alternative<std::monostate>(cells[c]))
      table.compared.push_back({table.rows.size(), table.columns[c], *base});
  }
  table.rows.push_back(std::move(cells));
  table.about.push_back(about);
}

bool compares(const std::string& column) {
  static const std::set<std::string> kNames = {"error", "mape", "bias", "worst", "verdict"};
  return kNames.contains(column) || column.starts_with("delta") || column.starts_with("gain") ||
         column.find("relative") != std::string::npos;
}

std::string unlike_in(const Table& table) {
  if (table.about.size() != table.rows.size())
    return fmt::format("{}: {} of {} rows say what they are about", table.name, table.about.size(),
                       table.rows.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (const std::string missing = missing_in(table.about[r]); !missing.empty())
      return fmt::format("{}, row {}: {} is not said", table.name, r, missing);
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& column = table.columns[c];
      if (!compares(column) || std::holds_alternative<std::monostate>(table.rows[r][c])) continue;
      const auto found = std::ranges::find_if(table.compared, [&](const Table::Compared& x) {
        return x.row == r && x.column == column;
      });
      if (found == table.compared.end())
        return fmt::format("{}, row {}: {} compares with nothing", table.name, r, column);
      if (likeness(found->base, table.about[r]) == Likeness::other_work)
        return fmt::format("{}, row {}: {}: {}", table.name, r, column,
                           likeness_note(found->base, table.about[r]));
    }
  }
  return {};
}

std::string to_csv(const Table& of) {
  const Table table = with_subjects(of);
  std::string out;
  for (const std::string& column : table.columns)
    out += (out.empty() ? "" : ",") + csv_cell(column);
  out += "\n";
  for (const std::vector<Cell>& row : table.rows) {
    FUSELINE_ASSERT(row.size() == table.columns.size(), table.name);
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += (i > 0 ? "," : "") + std::visit(CsvCell{}, row[i]);
    }
    out += "\n";
  }
  return out;
}

std::string to_json(const Table& of) {
  const Table table = with_subjects(of);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<Cell>& row : table.rows) {
    FUSELINE_ASSERT(row.size() == table.columns.size(), table.name);
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      object[table.columns[i]] = std::visit(JsonCell{}, row[i]);
    }
    rows.push_back(std::move(object));
  }
  const nlohmann::ordered_json out = {
      {"schema", "fuseline.view/1"}, {"view", table.name}, {"rows", std::move(rows)}};
  return json_text(out);
}

std::string file_stem(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "run" : out;
}

}  // namespace fuseline::gui
