#include "sim/gpu/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/data_files.h"
#include "base/toml_file.h"
#include "model/config/several_gpus.h"
#include "sim/gpu/calibration.h"
#include "sim/gpu/gpu_file.h"
#include "sim/gpu/power.h"
#include "sim/gpu/standing.h"

namespace fuseline {
namespace {

struct Unit {
  const char* name;
  double factor;  // to the dimension's base unit
};

enum class Dimension : std::uint8_t {
  count,
  hertz,
  flop_rate,
  bytes,
  byte_rate,
  per_clock,
  watts,
  seconds
};

constexpr double kKi = 1024.0;

std::vector<Unit> units_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::count:
      return {{"1", 1}};
    case Dimension::hertz:
      return {{"MHz", 1e6}, {"GHz", 1e9}};
    case Dimension::flop_rate:
      return {{"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"PFLOP/s", 1e15}};
    case Dimension::bytes:
      return {{"KiB", kKi}, {"MiB", kKi * kKi}, {"GiB", kKi * kKi * kKi},
              {"KB", 1e3},  {"MB", 1e6},        {"GB", 1e9}};
    case Dimension::byte_rate:
      return {{"GB/s", 1e9}, {"TB/s", 1e12}};
    case Dimension::per_clock:
      return {{"B/clk", 1}};
    case Dimension::watts:
      return {{"W", 1}};
    case Dimension::seconds:
      return {{"us", 1e-6}, {"ns", 1e-9}};
  }
  FUSELINE_ASSERT(false, "dimension");
}

bool counts_whole_things(Dimension d) {
  return d == Dimension::count || d == Dimension::bytes || d == Dimension::per_clock;
}

// One number of a GPU file. Ranges, in base units, only catch slips of units and digits: every part
// since 2016 and any thinkable one lies well inside.
struct NumberField {
  const char* key;
  Dimension dimension;
  double least, most;
  void (*set)(Gpu&, double);
};

std::int64_t whole(double v) { return std::llround(v); }

constexpr std::array kNumbers = {
    NumberField{"sm_count", Dimension::count, 1, 4096,
                [](Gpu& g, double v) { g.sm_count = whole(v); }},
    NumberField{"sm_clock_boost", Dimension::hertz, 1e8, 1e10,
                [](Gpu& g, double v) { g.sm_clock = Hertz(v); }},
    NumberField{"sm_clock_base", Dimension::hertz, 1e8, 1e10,
                [](Gpu& g, double v) { g.sm_clock_base = Hertz(v); }},
    NumberField{"tensor_clock", Dimension::hertz, 1e8, 1e10,
                [](Gpu& g, double v) { g.tensor_clock = Hertz(v); }},
    NumberField{"tensor_bf16_dense", Dimension::flop_rate, 1e12, 1e18,
                [](Gpu& g, double v) { g.tensor_bf16 = FlopsPerSecond(v); }},
    NumberField{"tensor_fp16_dense", Dimension::flop_rate, 1e12, 1e18,
                [](Gpu& g, double v) { g.tensor_fp16 = FlopsPerSecond(v); }},
    NumberField{"tensor_fp8_dense", Dimension::flop_rate, 0, 1e18,
                [](Gpu& g, double v) { g.tensor_fp8 = FlopsPerSecond(v); }},
    NumberField{"fp32_vector", Dimension::flop_rate, 1e11, 1e16,
                [](Gpu& g, double v) { g.vector_fp32 = FlopsPerSecond(v); }},
    NumberField{"hbm_capacity", Dimension::bytes, 1e9, 1e14,
                [](Gpu& g, double v) { g.hbm_capacity = Bytes(whole(v)); }},
    NumberField{"hbm_bandwidth", Dimension::byte_rate, 1e10, 1e15,
                [](Gpu& g, double v) { g.hbm_bandwidth = BytesPerSecond(v); }},
    NumberField{"hbm_bandwidth_sustained", Dimension::byte_rate, 1e10, 1e15,
                [](Gpu& g, double v) { g.hbm_bandwidth_sustained = BytesPerSecond(v); }},
    NumberField{"l2_capacity", Dimension::bytes, 64 * kKi, 1e12,
                [](Gpu& g, double v) { g.l2_capacity = Bytes(whole(v)); }},
    NumberField{"l2_partitions", Dimension::count, 1, 64,
                [](Gpu& g, double v) { g.l2_partitions = whole(v); }},
    NumberField{"l2_bandwidth", Dimension::byte_rate, 1e10, 1e16,
                [](Gpu& g, double v) { g.l2_bandwidth = BytesPerSecond(v); }},
    NumberField{"smem_per_sm", Dimension::bytes, 16 * kKi, 64 * kKi* kKi,
                [](Gpu& g, double v) { g.smem_per_sm = Bytes(whole(v)); }},
    NumberField{"smem_per_block_max", Dimension::bytes, 16 * kKi, 64 * kKi* kKi,
                [](Gpu& g, double v) { g.smem_per_block_max = Bytes(whole(v)); }},
    NumberField{"smem_bandwidth_per_sm", Dimension::per_clock, 16, 4096,
                [](Gpu& g, double v) { g.smem_bytes_per_clock = whole(v); }},
    NumberField{"register_file_per_sm", Dimension::bytes, 16 * kKi, 64 * kKi* kKi,
                [](Gpu& g, double v) { g.registers_per_sm = Bytes(whole(v)); }},
    NumberField{"max_threads_per_sm", Dimension::count, 256, 65536,
                [](Gpu& g, double v) { g.max_threads_per_sm = whole(v); }},
    NumberField{"tdp", Dimension::watts, 10, 1e5, [](Gpu& g, double v) { g.tdp = Watts(v); }},
    NumberField{"tiny_kernel_graph", Dimension::seconds, 1e-8, 1e-3,
                [](Gpu& g, double v) { g.tiny_kernel = Seconds(v); }},
};

// "1980 MHz (source, date, status)"; checks the parts that every number has.
std::string read_provenance(const TomlTable& number, const std::vector<std::string>& statuses) {
  number.refuse_other_keys({"value", "unit", "source", "date", "status"});
  const double value = number.real("value", {-1e300, 1e300});
  const std::string unit = number.text("unit");
  const std::string source = number.text("source");
  const std::string date = number.text("date");
  if (!is_date(date)) {
    number.fail("date", "is not a date", "\"2024\", \"2024-03\" or \"2024-03-18\"");
  }
  const std::string status = number.word("status", statuses);
  return fmt::format("{:.10g} {} ({}, {}, {})", value, unit, source, date, status);
}

void read_number(const TomlTable& table, const NumberField& field, Gpu& gpu) {
  const std::vector<Unit> units = units_of(field.dimension);
  std::vector<std::string> names;
  names.reserve(units.size());
  for (const Unit& unit : units) names.emplace_back(unit.name);
  if (!table.has(field.key)) {
    throw InputError({.file = table.file(),
                      .field = field.key,
                      .message = "the number is missing",
                      .allowed = fmt::format("{{ value, unit, source, date, status }} in {}",
                                             fmt::join(names, ", "))});
  }
  const TomlTable number = table.table(field.key);
  gpu.sources[field.key] =
      read_provenance(number, {"datasheet", "microbenchmark", "derived", "fitted"});

  const std::string written = number.text("unit");
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&written](const Unit& u) { return written == u.name; });
  if (unit == units.end()) {
    number.fail("unit", fmt::format("is the wrong unit for {}", field.key),
                fmt::format("{}", fmt::join(names, ", ")), nearest_name(written, names));
  }
  // Decimal digits in the file, binary in memory: a part in 1e12 is not the user's.
  const double value = number.real("value", {field.least / unit->factor * (1 - 1e-12),
                                             field.most / unit->factor * (1 + 1e-12)}) *
                       unit->factor;
  if (counts_whole_things(field.dimension) && std::abs(value - std::round(value)) > 1e-12 * value) {
    number.fail("value", fmt::format("{} {} is not a whole number", value, field.key),
                "a value that gives a whole number of bytes or units");
  }
  field.set(gpu, value);
}

bool is_number_table(const TomlTable& table) {
  const std::vector<std::string> keys = table.keys();
  return keys.empty() || std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
           return key == "value" || key == "unit" || key == "source" || key == "date" ||
                  key == "status";
         });
}

// A name that ends with its unit must have that unit: 2 ms are no 2 us.
void check_unit(const TomlTable& number, const std::string& name) {
  for (const char* unit : {"us", "ms"}) {
    if (name.ends_with(std::string("_") + unit) && number.text("unit") != unit) {
      number.fail("unit", "is the wrong unit for " + name, unit);
    }
  }
}

// Constants are named with dots, "gemm.start_us", which in TOML is a table within a table.
void read_calibration(const TomlTable& group, const std::string& prefix, Gpu& gpu) {
  const std::vector<ConstantRange> known = constant_ranges();
  for (const std::string& key : group.keys()) {
    const TomlTable number = group.table(key);
    const std::string name = prefix + key;
    if (is_number_table(number)) {
      const auto constant = std::find_if(known.begin(), known.end(),
                                         [&](const ConstantRange& c) { return c.name == name; });
      if (constant == known.end()) {
        std::vector<std::string> names;
        for (const ConstantRange& c : known) names.push_back(c.name);
        group.fail(key, "no constant of the hierarchy model has the name " + name,
                   "the names in sim/gpu/calibration.cpp, sim/gpu/gemm_constants.cpp and "
                   "sim/gpu/power.cpp",
                   nearest_name(name, names));
      }
      gpu.sources["calibration." + name] = read_provenance(number, {"fitted"});
      check_unit(number, name);
      gpu.calibration[name] = number.real("value", {constant->least, constant->most});
    } else {
      read_calibration(number, name + ".", gpu);
    }
  }
}

Architecture read_architecture(const TomlTable& table) {
  using Named = std::pair<const char*, Architecture>;
  constexpr std::array named = {
      Named{"ampere", Architecture::ampere}, Named{"ada", Architecture::ada},
      Named{"hopper", Architecture::hopper}, Named{"blackwell", Architecture::blackwell}};
  std::vector<std::string> words;
  words.reserve(named.size());
  for (const Named& entry : named) words.emplace_back(entry.first);
  const std::string word = table.word("architecture", words);
  for (const Named& entry : named) {
    if (word == entry.first) return entry.second;
  }
  FUSELINE_ASSERT(false, "architecture");
}

// NVIDIA's compute capabilities of each architecture, CUDA C++ Programming Guide.
std::vector<std::string> capabilities_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::ampere:
      return {"8.0", "8.6", "8.7"};
    case Architecture::ada:
      return {"8.9"};
    case Architecture::hopper:
      return {"9.0"};
    case Architecture::blackwell:
      return {"10.0", "10.1", "10.3", "11.0", "12.0", "12.1"};
  }
  FUSELINE_ASSERT(false, "architecture");
}

void check_order(const TomlTable& table, const char* smaller, double small, const char* larger,
                 double large) {
  if (small <= large) return;
  const TomlTable number = table.table(smaller);
  number.fail("value", fmt::format("{} is above {}", smaller, larger),
              fmt::format("at most {}", larger));
}

std::map<std::string, std::string> read_aliases() {
  std::map<std::string, std::string> aliases;
  for (const std::string& name : gpu_names()) {
    const TomlTable table = TomlTable::load(find_data_file(name, {"gpu", "gpus"}));
    if (!table.has("aliases")) continue;
    for (const std::string& alias : table.texts("aliases")) aliases.emplace(alias, name);
  }
  return aliases;
}

// "8xh100" would otherwise be an unknown name that is near to one GPU's.
void refuse_several_gpus(const std::string& text, std::vector<std::string> names,
                         const std::map<std::string, std::string>& aliases) {
  std::error_code ignored;
  if (looks_like_path(text) || std::filesystem::exists(text, ignored)) return;
  for (const auto& [alias, name] : aliases) names.push_back(alias);
  const std::optional<std::string> one = counted_gpu(text, names);
  if (!one) return;
  throw InputError({.field = "gpu",
                    .value = text,
                    .message = kSeveralGpusMessage,
                    .allowed = "the name of one GPU",
                    .nearest = nearest_name(*one, names)});
}

}  // namespace

bool is_date(std::string_view text) {
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      return false;
    }
  }
  return true;
}

Architecture kernel_architecture(const Gpu& gpu) {
  return gpu.compute_capability.starts_with("12.") ? Architecture::ada : gpu.architecture;
}

std::map<std::string, double> read_constants(const TomlTable& table) {
  table.refuse_other_keys({"calibration"});
  Gpu carrier;
  read_calibration(table.table("calibration"), "", carrier);
  return carrier.calibration;
}

Gpu read_gpu(const TomlTable& table) {
  std::vector<std::string> known = {
      "name",       "aliases",     "title",  "architecture", "compute_capability",
      "calibrated", "calibration", "checked"};
  for (const NumberField& field : kNumbers) known.emplace_back(field.key);
  table.refuse_other_keys(known);

  Gpu gpu;
  gpu.name = table.text("name");
  gpu.title = table.text("title");
  if (table.has("aliases")) gpu.aliases = table.texts("aliases");
  gpu.architecture = read_architecture(table);
  gpu.compute_capability = table.word("compute_capability", capabilities_of(gpu.architecture));
  gpu.calibrated = table.flag("calibrated");
  if (table.has("checked")) gpu.checks = read_checks(table);
  for (const NumberField& field : kNumbers) read_number(table, field, gpu);
  if (table.has("calibration")) read_calibration(table.table("calibration"), "", gpu);

  check_order(table, "sm_clock_base", gpu.sm_clock_base.value(), "sm_clock_boost",
              gpu.sm_clock.value());
  check_order(table, "hbm_bandwidth_sustained", gpu.hbm_bandwidth_sustained.value(),
              "hbm_bandwidth", gpu.hbm_bandwidth.value());
  check_order(table, "smem_per_block_max", gpu.smem_per_block_max.as_double(), "smem_per_sm",
              gpu.smem_per_sm.as_double());
  return gpu;
}

std::vector<std::string> gpu_names() { return data_file_names("gpus"); }

Gpu load_gpu(const std::string& name_or_path) {
  const std::vector<std::string> names = gpu_names();
  const bool is_name = std::find(names.begin(), names.end(), name_or_path) != names.end();
  const auto aliases = is_name || looks_like_path(name_or_path)
                           ? std::map<std::string, std::string>{}
                           : read_aliases();
  refuse_several_gpus(name_or_path, names, aliases);
  return read_gpu(TomlTable::load(find_data_file(name_or_path, {"gpu", "gpus"}, aliases)));
}

}  // namespace fuseline
