#include "gui/model/table.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

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

}  // namespace

std::string to_csv(const Table& table) {
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

std::string to_json(const Table& table) {
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
