#include "sim/traces/nsys_export.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/sqlite_file.h"

namespace fuseline {

namespace {

constexpr double kNanosecond = 1e-9;
constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kFills = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kWholeGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kHowToProfile =
    "a profile of kernels: nsys profile --trace cuda --cuda-graph-trace node PROGRAM";
constexpr std::size_t kMostStrings = 5'000'000;

std::int32_t small(std::int64_t value) {
  return value >= 0 && value < 1024 ? static_cast<std::int32_t>(value) : 0;
}

std::string triple_of(const SqliteRow& row, std::size_t first) {
  return fmt::format("({}, {}, {})", row.whole(first), row.whole(first + 1), row.whole(first + 2));
}

// Times as differences to the first, so that nanoseconds survive in a double.
struct Interval {
  Seconds begin, duration;
};
Interval interval(std::int64_t begin, std::int64_t end, std::optional<std::int64_t>& first) {
  if (!first) first = begin;
  std::int64_t since = 0, length = 0;
  // A difference that overflows is no time, which the list then refuses.
  if (__builtin_sub_overflow(begin, *first, &since) || __builtin_sub_overflow(end, begin, &length))
    return {Seconds(0), Seconds(std::numeric_limits<double>::quiet_NaN())};
  return {Seconds(static_cast<double>(since) * kNanosecond),
          Seconds(static_cast<double>(length) * kNanosecond)};
}

std::unordered_map<std::int64_t, std::string> kernel_names(const SqliteFile& file,
                                                           const std::string& path,
                                                           const std::vector<std::int64_t>& used) {
  std::unordered_map<std::int64_t, std::string> names;
  for (const std::int64_t id : used) names[id];
  std::size_t rows = 0;
  file.each("StringIds", {"id", "value"}, [&](const SqliteRow& row) {
    if (++rows > kMostStrings)
      throw InputError({.file = path,
                        .field = "StringIds",
                        .message = "has too many rows",
                        .allowed = fmt::format("at most {}", kMostStrings)});
    if (const auto name = names.find(row.whole(0)); name != names.end())
      name->second = row.text_or_empty(1);
  });
  return names;
}

void add_memory(const SqliteFile& file, const char* table, Activity activity,
                std::optional<std::int64_t>& first, LaunchListMaker& maker) {
  if (!file.has_table(table)) return;
  std::size_t row_number = 0;
  file.each(table, {"start", "end", "deviceId", "streamId"}, [&](const SqliteRow& row) {
    const Interval time = interval(row.whole(0), row.whole(1), first);
    maker.add({.activity = activity,
               .name = activity == Activity::copy ? "Memcpy" : "Memset",
               .device = small(row.whole(2)),
               .stream = row.whole(3),
               .begin = time.begin,
               .duration = time.duration},
              fmt::format("{} row {}", table, ++row_number));
  });
}

// "Duration (ns)", "Duration(nsec)" → "Duration", 1e-9.
struct NsysColumn {
  std::string name;
  double scale = 1;
};

NsysColumn column_of(const std::string& header) {
  const std::size_t open = header.find('(');
  NsysColumn out{header.substr(0, open)};
  while (out.name.ends_with(' ')) out.name.pop_back();
  if (open == std::string::npos) return out;
  const std::string unit = header.substr(open + 1, header.find(')') - open - 1);
  for (const auto& [name, scale] : {std::pair{"ns", 1e-9},
                                    {"nsec", 1e-9},
                                    {"us", 1e-6},
                                    {"usec", 1e-6},
                                    {"ms", 1e-3},
                                    {"msec", 1e-3}})
    if (unit == name) out.scale = scale;
  return out;
}

bool is_nsys_header(std::string_view line) {
  return (line.starts_with("Start") || line.starts_with("\"Start")) &&
         line.find("Duration") != std::string_view::npos &&
         line.find("GrdX") != std::string_view::npos && line.find("Name") != std::string_view::npos;
}

class NsysTable {
 public:
  NsysTable(const std::string& path, CsvRecord header) : path_(path), header_(std::move(header)) {
    for (const std::string& cell : header_.cells) columns_.push_back(column_of(cell));
  }

  [[nodiscard]] std::size_t size() const { return header_.cells.size(); }
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].name == name) return i;
    return std::nullopt;
  }
  [[nodiscard]] std::string text(const CsvRecord& record, const std::string& name) const {
    const auto at = find(name);
    return at ? record.cells[*at] : std::string();
  }
  // In the base unit.
  [[nodiscard]] double number(const CsvRecord& record, const std::string& name) const {
    const auto at = find(name);
    if (!at) return 0;
    std::string cell = record.cells[*at];
    std::erase(cell, ',');
    double value = 0;
    const char* end = cell.data() + cell.size();
    const auto [read, error] = std::from_chars(cell.data(), end, value);
    if (error != std::errc() || read != end)
      throw InputError({.file = path_,
                        .field = header_.cells[*at],
                        .value = record.cells[*at],
                        .message = "is not a number",
                        .allowed = "a number, as in 12,345",
                        .line = record.line});
    return value * columns_[*at].scale;
  }
  // "(132, 1, 1)"; empty for what is no kernel.
  [[nodiscard]] std::string edges(const CsvRecord& record, const std::string& stem) const {
    if (text(record, stem + "X").empty()) return {};
    return fmt::format("({:.0f}, {:.0f}, {:.0f})", number(record, stem + "X"),
                       number(record, stem + "Y"), number(record, stem + "Z"));
  }

 private:
  const std::string& path_;
  CsvRecord header_;
  std::vector<NsysColumn> columns_;
};

Activity activity_named(const std::string& name) {
  if (name.find("CUDA memcpy") != std::string::npos) return Activity::copy;
  if (name.find("CUDA memset") != std::string::npos) return Activity::fill;
  return Activity::kernel;
}

}  // namespace

LaunchList read_nsys_sqlite(const std::string& path) {
  const SqliteFile file(path);
  if (!file.has_table(kKernels)) {
    if (file.has_table(kWholeGraphs)) {
      throw InputError({.file = path,
                        .message = "CUDA graphs were recorded as a whole, without their kernels",
                        .allowed = kHowToProfile});
    }
    throw InputError({.file = path,
                      .field = kKernels,
                      .message = "the database has no table of kernels",
                      .allowed = kHowToProfile});
  }
  LaunchListMaker maker(path, "Nsight Systems");
  const std::vector<std::string> there = file.columns(kKernels);
  const bool demangled = std::find(there.begin(), there.end(), "demangledName") != there.end();
  const std::vector<std::string> columns = {"start",
                                            "end",
                                            "deviceId",
                                            "streamId",
                                            "gridX",
                                            "gridY",
                                            "gridZ",
                                            "blockX",
                                            "blockY",
                                            "blockZ",
                                            demangled ? "demangledName" : "shortName"};
  std::vector<std::int64_t> used;
  file.each(kKernels, {columns.back()},
            [&](const SqliteRow& row) { used.push_back(row.whole(0)); });
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const auto names = kernel_names(file, path, used);
  std::optional<std::int64_t> first;
  std::size_t row_number = 0;
  file.each(kKernels, columns, [&](const SqliteRow& row) {
    const Interval time = interval(row.whole(0), row.whole(1), first);
    maker.add({.name = names.at(row.whole(10)),
               .shape = {triple_of(row, 4), triple_of(row, 7)},
               .device = small(row.whole(2)),
               .stream = row.whole(3),
               .begin = time.begin,
               .duration = time.duration},
              fmt::format("{} row {}", kKernels, ++row_number));
  });
  add_memory(file, kCopies, Activity::copy, first, maker);
  add_memory(file, kFills, Activity::fill, first, maker);
  if (file.has_table("TARGET_INFO_GPU")) {
    file.each("TARGET_INFO_GPU", {"id", "name"}, [&](const SqliteRow& row) {
      maker.list().devices[small(row.whole(0))] = short_kernel_name(row.text_or_empty(1));
    });
  }
  return maker.finish(kHowToProfile);
}

bool holds_nsys_csv(const std::string& text) {
  const std::string path;
  CsvScanner scanner(path, text);
  while (!scanner.at_end() && !is_nsys_header(scanner.rest_of_line())) scanner.skip_line();
  return !scanner.at_end();
}

LaunchList read_nsys_csv(const std::string& path, const std::string& text) {
  CsvScanner scanner(path, text);
  while (!scanner.at_end() && !is_nsys_header(scanner.rest_of_line())) scanner.skip_line();
  const NsysTable table(path, scanner.record());
  LaunchListMaker maker(path, "Nsight Systems");
  while (!scanner.at_end()) {
    const std::string_view line = scanner.rest_of_line();
    if (line.empty() || line == "\r") {
      scanner.skip_line();
      continue;
    }
    CsvRecord record = scanner.record();
    if (record.cells.size() != table.size()) {
      throw InputError({.file = path,
                        .message = fmt::format("the line has {} cells", record.cells.size()),
                        .allowed = fmt::format("{} cells, as the header has", table.size()),
                        .line = record.line});
    }
    for (std::string& cell : record.cells) std::erase(cell, '\r');
    LaunchTexts launch{.name = table.text(record, "Name"),
                       .shape = {table.edges(record, "Grd"), table.edges(record, "Blk")},
                       .begin = Seconds(table.number(record, "Start")),
                       .duration = Seconds(table.number(record, "Duration"))};
    launch.activity = activity_named(launch.name);
    if (table.find("Strm") && !table.text(record, "Strm").empty()) {
      const double stream = table.number(record, "Strm");
      if (stream >= 0 && stream < 1e15) launch.stream = static_cast<std::int64_t>(stream);
    }
    // "NVIDIA H200 (0)"
    std::string device = table.text(record, "Device");
    if (const std::size_t open = device.rfind(" ("); open != std::string::npos) {
      std::int32_t ordinal = 0;
      std::from_chars(device.data() + open + 2, device.data() + device.size(), ordinal);
      launch.device = small(ordinal);
      device.resize(open);
    }
    maker.add(launch, fmt::format("line {}", record.line));
    if (!device.empty()) maker.list().devices.try_emplace(launch.device, short_kernel_name(device));
  }
  return maker.finish(kHowToProfile);
}

}  // namespace fuseline
