#include "cli/compare_table.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/format.h"
#include "cli/table.h"

namespace fuseline {

namespace {

std::string amount_text(const std::optional<Amount>& amount) {
  if (!amount) return "-";
  if (const auto* bytes = std::get_if<Bytes>(&*amount)) return megabytes(*bytes) + " MB";
  return in_microseconds(std::get<Seconds>(*amount)) + " µs";
}

// The number alone, in bytes or microseconds.
std::string amount_number(const std::optional<Amount>& amount) {
  if (!amount) return {};
  if (const auto* bytes = std::get_if<Bytes>(&*amount)) return std::to_string(bytes->value());
  return fmt::format("{:.3f}", to_us(std::get<Seconds>(*amount)));
}

std::vector<std::string> stats_cells(const ErrorRow& row, const ErrorStats& stats) {
  if (stats.cases == 0) return {"-", ""};
  if (row.is_worst_case) return {signed_percent(stats.worst), ""};
  return {percent(stats.mape), signed_percent(stats.bias)};
}

const char* title_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::block_time:
      return "block time";
    case Quantity::kernel_time:
      return "kernel time";
    case Quantity::gemm_time:
      return "library GEMM time";
    case Quantity::block_hbm:
      return "HBM bytes per block";
    case Quantity::gemm_kernel_hbm:
      return "HBM bytes per GEMM kernel";
  }
  return "?";
}

constexpr Quantity kQuantities[] = {Quantity::block_time, Quantity::kernel_time,
                                    Quantity::gemm_time, Quantity::block_hbm,
                                    Quantity::gemm_kernel_hbm};

std::string judged_table(const ErrorTable& table, const std::vector<JudgedCase>& cases) {
  std::vector<Column> columns = {{"case", Align::left}, {"measured"}};
  for (const std::string& name : table.predictors) columns.push_back({name});
  std::vector<std::vector<std::string>> rows;
  for (const JudgedCase& c : cases) {
    std::vector<std::string> row = {c.label, amount_text(c.measured)};
    for (std::size_t p = 0; p < table.predictors.size(); ++p) {
      const auto error = c.error(p);
      row.push_back(error ? signed_percent(*error) : "-");
    }
    rows.push_back(std::move(row));
  }
  return format_table(columns, rows);
}

}  // namespace

std::string coverage_text(const std::vector<Coverage>& coverage) {
  if (coverage.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Coverage& c : coverage) {
    rows.push_back({c.what, std::to_string(c.rows), percent(c.share()), percent(c.half_width),
                    percent(c.mean_error), percent(c.score)});
  }
  return "\n" +
         format_table({{"90 % bands", Align::left},
                       {"cases"},
                       {"within"},
                       {"half-width"},
                       {"mean |error|"},
                       {"interval score"}},
                      rows) +
         "half-width: median; interval score: mean of a band's width and 20 times what lies "
         "outside\n";
}

std::string error_table_text(const ErrorTable& table) {
  std::vector<Column> columns = {{"mean |error|, and bias", Align::left}, {"cases"}};
  for (const std::string& name : table.predictors) {
    columns.push_back({name});
    columns.push_back({"bias"});
  }
  columns.push_back({"target"});
  std::vector<std::vector<std::string>> rows;
  for (const ErrorRow& row : table.rows) {
    std::size_t cases = 0;
    for (const ErrorStats& s : row.by_predictor) cases = std::max(cases, s.cases);
    std::vector<std::string> cells = {row.what, std::to_string(cases)};
    for (const ErrorStats& s : row.by_predictor) {
      for (std::string& cell : stats_cells(row, s)) cells.push_back(std::move(cell));
    }
    cells.push_back(row.target ? fmt::format("<= {:.0f} %", *row.target * 100) : "");
    rows.push_back(std::move(cells));
  }
  return format_table(columns, rows);
}

std::string worst_cases_text(const ErrorTable& table, std::size_t predictor, std::size_t count) {
  std::string out;
  for (const Quantity quantity : kQuantities) {
    const std::vector<JudgedCase> cases = worst_cases(table, quantity, predictor, count);
    if (cases.empty()) continue;
    std::vector<std::vector<std::string>> rows;
    for (const JudgedCase& c : cases) {
      rows.push_back({c.label, amount_text(c.predicted[predictor]), amount_text(c.measured),
                      signed_percent(*c.error(predictor))});
    }
    out +=
        "\n" +
        format_table({{fmt::format("worst {}, {}", title_of(quantity), table.predictors[predictor]),
                       Align::left},
                      {"predicted"},
                      {"measured"},
                      {"error"}},
                     rows);
  }
  return out;
}

std::string all_cases_text(const ErrorTable& table, const std::vector<Quantity>& quantities) {
  std::string out;
  for (const Quantity quantity : quantities) {
    std::vector<JudgedCase> cases;
    for (const JudgedCase& c : table.cases) {
      if (c.quantity == quantity) cases.push_back(c);
    }
    if (!cases.empty())
      out += fmt::format("\n{}, and the error of each prediction\n", title_of(quantity)) +
             judged_table(table, cases);
  }
  return out;
}

std::string rivals_text(const Measurements& measurements) {
  std::vector<std::vector<std::string>> rows;
  for (const MeasuredBlock& rival : measurements.rivals) {
    std::string label = rival.block.label(), time = in_microseconds(rival.time.median) + " µs";
    for (const MeasuredBlock& ours : measurements.blocks) {
      BlockCase same = rival.block;
      same.execution = ours.block.execution;
      if (!same_case(same, ours.block)) continue;
      rows.push_back({label, time, ours.block.execution, in_microseconds(ours.time.median) + " µs",
                      fmt::format("{:.2f}", rival.time.median / ours.time.median)});
      label = time = "";
    }
    if (!label.empty()) rows.push_back({label, time, "-", "-", "-"});
  }
  if (rows.empty()) return {};
  return "\nrivals, timed in turns with our policies\n" + format_table({{"rival", Align::left},
                                                                        {"measured"},
                                                                        {"policy", Align::left},
                                                                        {"measured"},
                                                                        {"times as fast"}},
                                                                       rows);
}

std::string kernels_beside_text(const MeasuredTrace& trace, const PlanEstimate& estimate) {
  std::vector<KernelKind> measured, predicted;
  for (const MeasuredKernel& k : trace.kernels) measured.push_back(k.kind());
  for (const KernelEstimate& k : estimate.kernels) predicted.push_back(k.kind);
  std::map<std::size_t, std::size_t> partner;
  for (const KernelPair& pair : align_kernels(measured, predicted)) {
    partner[pair.measured] = pair.predicted;
  }

  std::vector<std::vector<std::string>> rows;
  std::size_t next = 0;  // first predicted kernel not shown yet
  const auto show_unmatched_before = [&](std::size_t end) {
    for (; next < end; ++next) {
      const KernelEstimate& k = estimate.kernels[next];
      rows.push_back({k.name, name_of(k.kind), in_microseconds(k.time), "-", "",
                      megabytes(k.hbm_read + k.hbm_write), "-", ""});
    }
  };
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const MeasuredKernel& m = trace.kernels[i];
    const Bytes hbm = m.hbm_read + m.hbm_write;
    const std::string counted = hbm + m.l2 == Bytes(0) ? "-" : megabytes(hbm);
    const auto found = partner.find(i);
    if (found == partner.end()) {
      rows.push_back({"(" + (m.site.empty() ? m.kernel : m.site) + ")", name_of(measured[i]), "-",
                      in_microseconds(m.duration()), "", "-", counted, ""});
      continue;
    }
    show_unmatched_before(found->second);
    const KernelEstimate& k = estimate.kernels[next++];
    const Bytes predicted_hbm = k.hbm_read + k.hbm_write;
    rows.push_back(
        {k.name, name_of(k.kind), in_microseconds(k.time), in_microseconds(m.duration()),
         signed_percent(k.time / m.duration() - 1), megabytes(predicted_hbm), counted,
         hbm == Bytes(0) ? "-" : signed_percent(predicted_hbm.as_double() / hbm.as_double() - 1)});
  }
  show_unmatched_before(estimate.kernels.size());
  return fmt::format("\n{}: {} kernels measured, {} predicted\n", trace.block.label(),
                     trace.kernels.size(), estimate.kernels.size()) +
         format_table({{"kernel", Align::left},
                       {"kind", Align::left},
                       {"time µs"},
                       {"measured"},
                       {"error"},
                       {"HBM MB"},
                       {"measured"},
                       {"error"}},
                      rows);
}

std::string cases_csv(const ErrorTable& table) {
  std::string out = "quantity,case,unit,measured";
  for (const std::string& name : table.predictors) out += "," + csv_cell(name);
  out += "\n";
  for (const JudgedCase& c : table.cases) {
    out += fmt::format("{},{},{},{}", name_of(c.quantity), csv_cell(c.label),
                       std::holds_alternative<Bytes>(c.measured) ? "bytes" : "us",
                       amount_number(c.measured));
    for (const auto& predicted : c.predicted) out += "," + amount_number(predicted);
    out += "\n";
  }
  return out;
}

}  // namespace fuseline
