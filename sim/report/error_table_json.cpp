#include "sim/report/error_table_json.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

ordered_json stats_json(const ErrorStats& s) {
  return {{"cases", s.cases}, {"mape", s.mape}, {"bias", s.bias}, {"worst", s.worst}};
}

ordered_json amount_json(const Amount& amount) {
  if (const auto* bytes = std::get_if<Bytes>(&amount)) return bytes->value();
  return to_us(std::get<Seconds>(amount));
}

ordered_json coverage_json(const std::vector<Coverage>& coverage) {
  ordered_json out = ordered_json::array();
  for (const Coverage& c : coverage) {
    out.push_back({{"what", c.what},
                   {"rows", c.rows},
                   {"within", c.share()},
                   {"median_half_width", c.half_width},
                   {"mean_error", c.mean_error},
                   {"interval_score", c.score}});
  }
  return out;
}

// "measured_us" or "measured_bytes", as the quantity is.
std::string amount_key(const char* stem, const Amount& amount) {
  return std::string(stem) + (std::holds_alternative<Bytes>(amount) ? "_bytes" : "_us");
}

}  // namespace

std::string error_table_json(const Measurements& measurements, const ErrorTable& table,
                             const std::vector<Coverage>& coverage) {
  ordered_json rows = ordered_json::array();
  for (const ErrorRow& row : table.rows) {
    ordered_json errors = ordered_json::object();
    for (std::size_t p = 0; p < table.predictors.size(); ++p) {
      errors[table.predictors[p]] = stats_json(row.by_predictor[p]);
    }
    const std::size_t indent = row.what.find_first_not_of(' ');
    rows.push_back({{"what", row.what.substr(indent)},
                    {"quantity", name_of(row.quantity)},
                    {"worst_case", row.is_worst_case},
                    {"target", row.target ? ordered_json(*row.target) : ordered_json()},
                    {"errors", std::move(errors)}});
  }
  ordered_json cases = ordered_json::array();
  for (const JudgedCase& c : table.cases) {
    ordered_json predicted = ordered_json::object();
    for (std::size_t p = 0; p < table.predictors.size(); ++p) {
      if (c.predicted[p]) predicted[table.predictors[p]] = amount_json(*c.predicted[p]);
    }
    cases.push_back({{"quantity", name_of(c.quantity)},
                     {"case", c.label},
                     {amount_key("measured", c.measured), amount_json(c.measured)},
                     {amount_key("predicted", c.measured), std::move(predicted)}});
  }
  return json_text({{"schema", "fuseline.comparison/1"},
                    {"measurement", measurements.path},
                    {"device", measurements.meta.device},
                    {"predictors", table.predictors},
                    {"rows", std::move(rows)},
                    {"cases", std::move(cases)},
                    {"coverage", coverage_json(coverage)},
                    {"not_judged", table.not_judged}});
}

}  // namespace fuseline
