#include "gui/model/session_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/model/command_text.h"
#include "gui/model/run_rows.h"
#include "sim/draw/svg.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kMostTableRows = 400;  // of a table; its CSV has all

// Base64 (RFC 4648, section 4): a picture in an <img> cannot reach the page's own names and styles.
std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

struct CellText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const std::string& text) const { return escaped(text); }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return fmt::format("{:.6g}", number); }
};

std::string table_html(const Table& table) {
  std::string out = fmt::format("<details><summary>{}: {} rows</summary><table><tr>",
                                escaped(table.name), table.rows.size());
  for (const std::string& column : table.columns) out += "<th>" + escaped(column) + "</th>";
  out += "</tr>\n";
  for (std::size_t r = 0; r < std::min(table.rows.size(), kMostTableRows); ++r) {
    out += "<tr>";
    for (const Cell& cell : table.rows[r]) out += "<td>" + std::visit(CellText{}, cell) + "</td>";
    out += "</tr>\n";
  }
  if (table.rows.size() > kMostTableRows)
    out += fmt::format("<tr><td>and {} more</td></tr>\n", table.rows.size() - kMostTableRows);
  return out + "</table></details>\n";
}

std::string runs_html(const Document& document, const Results& results) {
  std::string out =
      "<table><tr><th>run</th><th>time</th><th>to the baseline</th><th>HBM</th><th>to the "
      "baseline</th><th>launches</th><th>of</th><th></th></tr>\n";
  for (const RunRow& row : run_rows(document, results)) {
    const char* bold = row.is_baseline ? "<b>" : "";
    const char* end = row.is_baseline ? "</b>" : "";
    out += fmt::format(
        "<tr><td>{}{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        bold, escaped(row.label), end, escaped(row.time), escaped(row.time_delta.relative_text),
        escaped(row.hbm), escaped(row.hbm_delta.relative_text), escaped(row.launches),
        escaped(row.machine), escaped(row.note));
  }
  return out + "</table>\n";
}

}  // namespace

std::string session_page(const Document& document, const Results& results,
                         const std::vector<PageView>& views, const std::string& file) {
  const std::string title = document.title.empty() ? "fuseline" : document.title;
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font:15px/1.5 sans-serif;max-width:78em;margin:2em auto;padding:0 1em;"
      "color:#1d2329;background:#fff}}img{{max-width:100%;border:1px solid #e4e7eb}}"
      "table{{border-collapse:collapse;margin:.6em 0;font-size:90%;display:block;overflow-x:auto}}"
      "td,th{{padding:.15em .7em;text-align:left;border-bottom:1px solid #e4e7eb}}"
      "pre{{background:#f3f5f7;padding:.7em;overflow-x:auto}}.hint{{color:#5c6670}}</style>"
      "</head><body>\n<h1>{0}</h1>\n",
      escaped(title));
  const CommandText command = command_of(document, file);
  out += "<p>These predictions are what this command prints";
  if (!command.note.empty()) out += " (" + escaped(command.note) + ")";
  out += ":</p>\n<pre>" + escaped(command.command) + "</pre>\n";
  out += runs_html(document, results);
  for (const PageView& view : views) {
    out += fmt::format(
        "<h2 id=\"{0}\">{1}</h2>\n<p class=\"hint\">{2}</p>\n<img alt=\"{1}\" "
        "src=\"data:image/svg+xml;base64,{3}\">\n",
        escaped(view.id), escaped(view.title), escaped(view.hint), base64(view.svg));
    for (const Table& table : view.tables) out += table_html(table);
  }
  return out + "</body></html>\n";
}

}  // namespace fuseline::gui
