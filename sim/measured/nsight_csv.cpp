#include "sim/measured/nsight_csv.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/data_files.h"
#include "base/error.h"
#include "sim/measured/nsight_table.h"

namespace fuseline {

namespace {

constexpr std::size_t kKernelNameLength = 90;

enum Metric : std::size_t { time, hbm_read, hbm_write, l2 };
constexpr std::array<const char*, 4> kMetricNames = {
    "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"};
// The label of the first in the tool's own sections.
constexpr const char* kDurationLabel = "Duration";

std::string command_for_metrics() {
  return std::string("output of ncu --csv --page raw --print-units base --metrics ") +
         kNsightMetrics;
}

[[noreturn]] void fail_missing(const std::string& path, Metric metric, int line,
                               const std::string& message, const std::vector<std::string>& near) {
  throw InputError({.file = path,
                    .field = kMetricNames[metric],
                    .message = message,
                    .allowed = command_for_metrics(),
                    .nearest = nearest_name(kMetricNames[metric], near),
                    .line = line});
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

void take_name(MeasuredKernel& kernel, std::string name) {
  replace_all(name, "(anonymous namespace)", "<unnamed>");
  replace_all(name, "native::", "");
  kernel.kernel = std::move(name);
  const KernelKind kind = kernel.kind();
  if (kernel.kernel.size() <= kKernelNameLength) return;
  kernel.kernel.resize(kKernelNameLength);
  if (kernel.kind() != kind) kernel.recorded_kind = kind;
}

// "(2,66,1)" → "(2, 66, 1)".
std::string tidy_triple(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out += c;
    if (c == ',') out += ' ';
  }
  return out;
}

// The innermost range: "<default domain>:op=qkv:none" → "qkv".
std::string site_in(const std::string& ranges) {
  const std::size_t at = ranges.rfind("op=");
  if (at == std::string::npos) return {};
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  const auto begin = ranges.begin() + static_cast<std::ptrdiff_t>(at + 3);
  return {begin, std::find_if_not(begin, ranges.end(), is_word)};
}

// What both forms say of a kernel in the columns left of the metrics.
class KernelColumns {
 public:
  explicit KernelColumns(const NsightTable& table)
      : table_(table), id_(table.column("ID")), name_(table.column("Kernel Name")) {
    for (std::size_t i = 0; i < table.header.cells.size(); ++i) {
      const std::string& column = table.header.cells[i];
      if (column.find("_Range:") != std::string::npos || column.find("NVTX") == 0) {
        ranges_.push_back(i);
      }
    }
  }

  // The raw page's row of units names no kernel.
  [[nodiscard]] bool is_units(const CsvRecord& r) const {
    return r.cells[id_].empty() && r.cells[name_].empty();
  }
  [[nodiscard]] std::pair<std::string, std::string> launch(const CsvRecord& r) const {
    return {optional_cell(r, "Process ID"), r.cells[id_]};
  }
  [[nodiscard]] NsightKernel kernel(const CsvRecord& r) const {
    NsightKernel out;
    out.line = r.line;
    out.process = optional_cell(r, "Process ID");
    out.device = optional_cell(r, "Device");
    out.compute_capability = optional_cell(r, "CC");
    out.kernel.grid = tidy_triple(optional_cell(r, "Grid Size"));
    out.kernel.block = tidy_triple(optional_cell(r, "Block Size"));
    for (const std::size_t i : ranges_) {
      if (const std::string site = site_in(r.cells[i]); !site.empty()) out.kernel.site = site;
    }
    if (r.cells[name_].empty()) {
      throw InputError({.file = table_.path,
                        .field = "Kernel Name",
                        .message = "is empty",
                        .allowed = "a kernel's name",
                        .line = r.line});
    }
    take_name(out.kernel, r.cells[name_]);
    return out;
  }

 private:
  [[nodiscard]] std::string optional_cell(const CsvRecord& r, const char* column) const {
    return table_.has_column(column) ? r.cells[table_.column(column)] : std::string();
  }

  const NsightTable& table_;
  std::size_t id_, name_;
  std::vector<std::size_t> ranges_;  // columns of NVTX ranges
};

struct MetricValue {
  std::string value, unit;
};

void take_metrics(NsightReport& report, NsightKernel kernel,
                  const std::array<MetricValue, 4>& values) {
  const auto cell = [&](Metric m) { return NsightCell{report.path, kernel.line, kMetricNames[m]}; };
  const auto bytes = [&](Metric m) {
    report.rounded |= values[m].unit != "byte";
    return nsight_bytes(values[m].value, values[m].unit, cell(m));
  };
  kernel.kernel.time = nsight_time(values[time].value, values[time].unit, cell(time));
  if (kernel.kernel.time <= Seconds(0)) {
    throw InputError({.file = report.path,
                      .field = kMetricNames[time],
                      .value = values[time].value,
                      .message = "a kernel takes time",
                      .allowed = "a number above 0",
                      .line = kernel.line});
  }
  kernel.kernel.hbm_read = bytes(hbm_read);
  kernel.kernel.hbm_write = bytes(hbm_write);
  kernel.kernel.l2 = bytes(l2);
  report.kernels.push_back(std::move(kernel));
}

// --page raw: a column per metric, its unit in the row below the header.
NsightReport from_rows(const NsightTable& table) {
  NsightReport report{.path = table.path, .kernels = {}};
  const KernelColumns columns(table);
  std::array<std::size_t, 4> at{};
  for (const Metric m : {time, hbm_read, hbm_write, l2}) {
    if (!table.has_column(kMetricNames[m])) {
      fail_missing(table.path, m, table.header.line, "the metric was not collected",
                   table.header.cells);
    }
    at[m] = table.column(kMetricNames[m]);
  }
  const CsvRecord* units = nullptr;
  for (const CsvRecord& record : table.records) {
    if (columns.is_units(record)) {
      units = &record;
      continue;
    }
    if (units == nullptr) {
      throw InputError({.file = table.path,
                        .message = "no row of units stands below the header",
                        .allowed = command_for_metrics(),
                        .line = record.line});
    }
    std::array<MetricValue, 4> values;
    for (const Metric m : {time, hbm_read, hbm_write, l2}) {
      values[m] = {record.cells[at[m]], units->cells[at[m]]};
    }
    take_metrics(report, columns.kernel(record), values);
  }
  return report;
}

// The default form: a record per metric, the records of one launch one after the other.
NsightReport from_metrics(const NsightTable& table) {
  NsightReport report{.path = table.path, .kernels = {}};
  const KernelColumns columns(table);
  const std::size_t name = table.column("Metric Name"), unit = table.column("Metric Unit"),
                    value = table.column("Metric Value");
  for (std::size_t first = 0; first < table.records.size();) {
    std::size_t end = first;
    std::map<std::string, MetricValue> values;
    for (; end < table.records.size() &&
           columns.launch(table.records[end]) == columns.launch(table.records[first]);
         ++end) {
      const std::vector<std::string>& cells = table.records[end].cells;
      if (!cells[name].empty())
        values.try_emplace(cells[name], MetricValue{cells[value], cells[unit]});
    }
    if (const auto label = values.find(kDurationLabel); label != values.end()) {
      values.try_emplace(kMetricNames[time], label->second);
    }
    std::array<MetricValue, 4> wanted;
    for (const Metric m : {time, hbm_read, hbm_write, l2}) {
      const auto found = values.find(kMetricNames[m]);
      if (found == values.end()) {
        std::vector<std::string> names;
        for (const auto& [collected, unused] : values) names.push_back(collected);
        fail_missing(table.path, m, table.records[first].line,
                     "the metric was not collected for this kernel", names);
      }
      wanted[m] = found->second;
    }
    take_metrics(report, columns.kernel(table.records[first]), wanted);
    first = end;
  }
  return report;
}

}  // namespace

NsightReport read_nsight_csv(const std::string& path) {
  return read_nsight_csv(path, read_input_file(path, kLargestReport));
}

NsightReport read_nsight_csv(const std::string& path, const std::string& text) {
  const NsightTable table = read_nsight_table(path, text);
  NsightReport report = table.has_column("Metric Name") ? from_metrics(table) : from_rows(table);
  if (report.kernels.empty()) {
    throw InputError({.file = path,
                      .message = "the table has units and no kernel",
                      .allowed = "at least one kernel",
                      .line = table.header.line});
  }
  return report;
}

}  // namespace fuseline
