#include "sim/measured/measurement_table.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/toml_file.h"
#include "base/toml_text.h"

namespace fuseline {

namespace {

constexpr int kMsDecimals = 9;  // picoseconds
constexpr int kUsDecimals = 6;
constexpr int kMhzDecimals = 3;
constexpr int kWattDecimals = 3;

// A number without trailing zeros: 0.425890000 → 0.42589.
std::string decimal(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string ms(Seconds s) { return decimal(s.value() * 1e3, kMsDecimals); }
std::string us(Seconds s) { return decimal(s.value() * 1e6, kUsDecimals); }
std::string mhz(Hertz f) { return decimal(f.value() * 1e-6, kMhzDecimals); }
std::string watts(Watts w) { return decimal(w.value(), kWattDecimals); }
std::string bytes(Bytes b) { return std::to_string(b.value()); }
std::string ratio(double r) { return fmt::format("{}", r); }

// Empty: numbers of the workload's type.
template <class Stored>
std::string format(const Stored& stored) {
  return stored.quantised() ? stored.name() : std::string();
}

template <class T>
std::string if_there(const std::optional<T>& value, std::string (*text)(T)) {
  return value ? text(*value) : std::string();
}

template <class Row>
struct Column {
  const char* name;
  bool optional;  // left out when no row has a value
  std::string (*cell)(const Row&);
};

struct KernelRow {
  const BlockCase& block;
  std::size_t order;
  const MeasuredKernel& kernel;
};

// Every kernel moves some bytes through L2, so one with none was not counted: its cells are empty.
std::string counted(const KernelRow& row, Bytes value) {
  const MeasuredKernel& k = row.kernel;
  return k.hbm_read + k.hbm_write + k.l2 == Bytes(0) ? std::string() : bytes(value);
}

template <class Row>
std::vector<Column<Row>> case_columns() {
  return {
      {"model", false, [](const Row& r) { return r.block.model; }},
      {"execution", false, [](const Row& r) { return r.block.execution; }},
      {"phase", false, [](const Row& r) { return std::string(name_of(r.block.workload.phase)); }},
      {"batch", false, [](const Row& r) { return std::to_string(r.block.workload.batch); }},
      {"seq", false, [](const Row& r) { return std::to_string(r.block.workload.seq); }},
      {"context", false, [](const Row& r) { return std::to_string(r.block.workload.context); }},
      {"dtype", true,
       [](const Row& r) {
         const Dtype dtype = r.block.workload.dtype;
         return dtype == Dtype::bf16 ? std::string() : std::string(name_of(dtype));
       }},
      {"weights", true, [](const Row& r) { return format(r.block.workload.formats.weights); }},
      {"activations", true,
       [](const Row& r) { return format(r.block.workload.formats.activations); }},
      {"kv", true, [](const Row& r) { return format(r.block.workload.formats.cache); }},
      {"routing", true, [](const Row& r) { return routing_line(r.block.workload.routing); }}};
}

template <class Row>
std::vector<Column<Row>> operator+(std::vector<Column<Row>> a, std::vector<Column<Row>> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Column<MeasuredBlock>> block_columns() {
  using B = MeasuredBlock;
  return case_columns<B>() +
         std::vector<Column<B>>{
             {"ms_median", false, [](const B& b) { return ms(b.time.median); }},
             {"ms_min", false, [](const B& b) { return ms(b.time.least); }},
             {"ms_max", false, [](const B& b) { return ms(b.time.most); }},
             {"timer", true, [](const B& b) { return b.timer; }},
             {"sm_mhz_median", true, [](const B& b) { return if_there(b.sm_clock_median, mhz); }},
             {"sm_mhz_min", true, [](const B& b) { return if_there(b.sm_clock_least, mhz); }},
             {"power_w", true, [](const B& b) { return if_there(b.power, watts); }},
             {"throttle", true, [](const B& b) { return b.throttle; }},
             {"checked", true, [](const B& b) { return if_there(b.checked, ratio); }},
             {"hbm_read_bytes", true, [](const B& b) { return if_there(b.hbm_read, bytes); }},
             {"hbm_write_bytes", true, [](const B& b) { return if_there(b.hbm_write, bytes); }},
             {"l2_bytes", true, [](const B& b) { return if_there(b.l2, bytes); }}};
}

std::vector<Column<KernelRow>> kernel_columns() {
  using K = KernelRow;
  return case_columns<K>() +
         std::vector<Column<K>>{
             {"order", false, [](const K& k) { return std::to_string(k.order); }},
             {"operator", false, [](const K& k) { return k.kernel.site; }},
             {"kernel", false, [](const K& k) { return k.kernel.kernel; }},
             {"kind", true,
              [](const K& k) {
                const auto kind = k.kernel.recorded_kind;
                return kind ? std::string(name_of(*kind)) : std::string();
              }},
             {"tile", true, [](const K& k) { return k.kernel.tile; }},
             {"grid", true, [](const K& k) { return k.kernel.grid; }},
             {"block", true, [](const K& k) { return k.kernel.block; }},
             {"us", false, [](const K& k) { return us(k.kernel.time); }},
             {"us_graph", true, [](const K& k) { return if_there(k.kernel.time_in_graph, us); }},
             {"dram_read_bytes", false, [](const K& k) { return counted(k, k.kernel.hbm_read); }},
             {"dram_write_bytes", false, [](const K& k) { return counted(k, k.kernel.hbm_write); }},
             {"l2_bytes", false, [](const K& k) { return counted(k, k.kernel.l2); }}};
}

std::vector<Column<MeasuredGemm>> gemm_columns() {
  using G = MeasuredGemm;
  return {{"m", false, [](const G& g) { return std::to_string(g.m); }},
          {"n", false, [](const G& g) { return std::to_string(g.n); }},
          {"k", false, [](const G& g) { return std::to_string(g.k); }},
          {"us_median", false, [](const G& g) { return us(g.time.median); }},
          {"us_min", false, [](const G& g) { return us(g.time.least); }},
          {"us_max", false, [](const G& g) { return us(g.time.most); }},
          {"tflops", false, [](const G& g) {
             const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) *
                                  static_cast<double>(g.k);
             return fmt::format("{:.1f}", flops / g.time.median.value() * 1e-12);
           }}};
}

// The reader takes a file line by line.
std::string quoted(const char* column, const std::string& cell) {
  for (const char c : cell) {
    if (static_cast<unsigned char>(c) >= ' ' || c == '\t') continue;
    throw InputError({.field = column,
                      .value = cell,
                      .message = "holds a line break or a control character",
                      .allowed = "text in one line"});
  }
  return csv_cell(cell);
}

template <class Row>
std::string table(std::vector<Column<Row>> columns, std::span<const Row> rows) {
  std::erase_if(columns, [&](const Column<Row>& c) {
    return c.optional && std::all_of(rows.begin(), rows.end(),
                                     [&](const Row& row) { return c.cell(row).empty(); });
  });
  std::string text;
  const auto end_cell = [&](std::size_t i) { text += i + 1 < columns.size() ? ',' : '\n'; };
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += columns[i].name;
    end_cell(i);
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      text += quoted(columns[i].name, columns[i].cell(row));
      end_cell(i);
    }
  }
  return text;
}

template <class Row>
std::vector<std::string> names(const std::vector<Column<Row>>& columns) {
  std::vector<std::string> out;
  for (const Column<Row>& c : columns) out.emplace_back(c.name);
  return out;
}

// One field as text, tried with the reader.
std::string toml_field(const char* name, const std::string& value) {
  std::string text = fmt::format("{} = {}\n", name, value);
  try {
    TomlTable::parse(text, "meta.toml");
  } catch (const InputError& error) {
    throw InputError({.file = "meta.toml",
                      .field = name,
                      .value = value,
                      .message = "cannot stand in a TOML file",
                      .allowed = "UTF-8 text of moderate length"});
  }
  return text;
}

// Nothing when there are no texts.
std::string toml_field(const char* name, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  return toml_field(name, toml_list(texts));
}

}  // namespace

std::vector<std::string> measurement_columns(const std::string& file) {
  if (file == "block.csv" || file == "rivals.csv") return names(block_columns());
  if (file == "kernels.csv") return names(kernel_columns());
  FUSELINE_ASSERT(file == "gemm.csv", file);
  return names(gemm_columns());
}

std::string blocks_csv(std::span<const MeasuredBlock> blocks) {
  return table(block_columns(), blocks);
}

std::string kernels_csv(std::span<const MeasuredTrace> traces) {
  std::vector<KernelRow> rows;
  for (const MeasuredTrace& trace : traces) {
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
      rows.push_back({trace.block, i, trace.kernels[i]});
    }
  }
  return table(kernel_columns(), std::span<const KernelRow>(rows));
}

std::string gemms_csv(std::span<const MeasuredGemm> gemms) { return table(gemm_columns(), gemms); }

std::string meta_toml(const MeasurementMeta& meta) {
  struct Field {
    const char* name;
    const std::string& text;
  };
  std::string out;
  for (const Field& f :
       {Field{"title", meta.title}, Field{"gpu", meta.gpu}, Field{"device", meta.device},
        Field{"driver", meta.driver}, Field{"toolkit", meta.toolkit},
        Field{"framework", meta.framework}, Field{"version", meta.version},
        Field{"date", meta.date}, Field{"clocks", meta.clocks}, Field{"counters", meta.counters}}) {
    if (!f.text.empty()) out += toml_field(f.name, toml_text(f.text));
  }
  if (meta.raster_clusters)
    out += toml_field("raster_clusters", std::to_string(*meta.raster_clusters));
  if (!meta.launches.empty()) out += toml_field("launches", toml_text(meta.launches));
  std::vector<std::string> commands;
  std::istringstream lines(meta.command);
  for (std::string line; std::getline(lines, line);) commands.push_back(line);
  if (commands.size() == 1)
    out += toml_field("command", toml_text(commands.front()));
  else
    out += toml_field("command", commands);
  return out + toml_field("notes", meta.notes);
}

}  // namespace fuseline
