#include "sim/gpu/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/data_files.h"
#include "base/toml_file.h"
#include "model/config/several_gpus.h"
#include "sim/gpu/constant_table.h"
#include "sim/gpu/gpu_file.h"
#include "sim/gpu/provenance.h"
#include "sim/gpu/standing.h"

namespace fuseline {
namespace {

struct GpuUnit {
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

// assumed: of a part that is planned or imagined, so that nobody could measure or publish it.
const std::vector<std::string> kStatuses = {"datasheet", "microbenchmark", "derived", "fitted",
                                            "assumed"};

std::vector<GpuUnit> units_of(Dimension dimension) {
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
  bool required = true;
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
    NumberField{"tensor_int8_dense", Dimension::flop_rate, 0, 1e18,
                [](Gpu& g, double v) { g.tensor_int8 = FlopsPerSecond(v); }, false},
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

// Value of the table `key` in base units.
struct GpuQuantity {
  const char* key;
  Dimension dimension;
  double least, most;
};

double read_quantity(const TomlTable& table, const GpuQuantity& quantity) {
  const std::vector<GpuUnit> units = units_of(quantity.dimension);
  std::vector<std::string> names;
  names.reserve(units.size());
  for (const GpuUnit& unit : units) names.emplace_back(unit.name);
  if (!table.has(quantity.key)) {
    throw InputError({.file = table.file(),
                      .field = quantity.key,
                      .message = "the number is missing",
                      .allowed = fmt::format("{{ value, unit, source, date, status }} in {}",
                                             fmt::join(names, ", "))});
  }
  const TomlTable number = table.table(quantity.key);
  const std::string written = number.text("unit");
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&written](const GpuUnit& u) { return written == u.name; });
  if (unit == units.end()) {
    number.fail("unit", fmt::format("is the wrong unit for {}", quantity.key),
                fmt::format("{}", fmt::join(names, ", ")), nearest_name(written, names));
  }
  // Decimal digits in the file, binary in memory: a part in 1e12 is not the user's.
  const double value = number.real("value", {quantity.least / unit->factor * (1 - 1e-12),
                                             quantity.most / unit->factor * (1 + 1e-12)}) *
                       unit->factor;
  if (counts_whole_things(quantity.dimension) &&
      std::abs(value - std::round(value)) > 1e-12 * value) {
    number.fail("value", fmt::format("{} {} is not a whole number", value, quantity.key),
                "a value that gives a whole number of bytes or units");
  }
  return value;
}

void read_number(const TomlTable& table, const NumberField& field, Gpu& gpu) {
  if (!field.required && !table.has(field.key)) return;
  // The source first, so that a number without one is told so whatever else is wrong.
  if (table.has(field.key)) {
    gpu.sources[field.key] = describe(read_provenance(table.table(field.key), kStatuses));
  }
  field.set(gpu, read_quantity(table, {field.key, field.dimension, field.least, field.most}));
}

bool is_number_table(const TomlTable& table) {
  const std::vector<std::string> keys = table.keys();
  return keys.empty() || std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
           return key == "value" || key == "unit" || key == "source" || key == "date" ||
                  key == "status";
         });
}

// Files of earlier versions write the unit "1" for all but times.
void check_unit(const TomlTable& number, const ConstantInfo& constant) {
  const std::string_view unit = constant.unit;
  const bool time = unit == "us" || unit == "ms";
  const std::string written = number.text("unit");
  if (written == unit || (!time && written == "1")) return;
  number.fail("unit", fmt::format("is the wrong unit for {}", constant.name), std::string(unit));
}

// A constant of the [calibration] section.
struct OwnConstant {
  std::string name;
  TomlTable number;
  Provenance provenance;
};

// Constants are named with dots, "gemm.start_us", which in TOML is a table within a table.
void read_calibration(const TomlTable& group, const std::string& prefix,
                      std::vector<OwnConstant>& all) {
  for (const std::string& key : group.keys()) {
    const TomlTable number = group.table(key);
    const std::string name = prefix + key;
    if (!is_number_table(number)) {
      read_calibration(number, name + ".", all);
      continue;
    }
    const ConstantInfo* constant = find_constant(name);
    if (constant == nullptr) {
      group.fail(key, "no constant of the hierarchy model has the name " + name,
                 "the names in sim/gpu/constant_table.cpp", nearest_name(name, constant_names()));
    }
    all.push_back({name, number, read_provenance(number, {"fitted"})});
    check_unit(number, *constant);
  }
}

std::vector<OwnConstant> read_calibration(const TomlTable& table) {
  std::vector<OwnConstant> all;
  if (table.has("calibration")) read_calibration(table.table("calibration"), "", all);
  return all;
}

void replace_constants(const std::vector<OwnConstant>& own, Gpu& gpu) {
  for (const OwnConstant& constant : own) {
    const ConstantOrigin& origin = gpu.architecture->origins.at(constant.name);
    set_constant(gpu, constant.name, constant.number.real("value", {origin.least, origin.most}));
    gpu.sources["calibration." + constant.name] = describe(constant.provenance);
  }
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

// Levels beside those that every GPU has: name, scope, how many pieces, and one piece's numbers.
GpuMemory read_memory(const TomlTable& entry, Gpu& gpu) {
  entry.refuse_other_keys({"name", "scope", "instances", "capacity", "bandwidth"});
  GpuMemory memory;
  memory.name = entry.text("name");
  const std::string scope = entry.word("scope", {"sm", "die", "package"});
  memory.scope = scope == "sm"    ? MemoryScope::sm
                 : scope == "die" ? MemoryScope::die
                                  : MemoryScope::package;
  memory.instances = entry.whole("instances", {1, 1 << 20});
  const std::string prefix = memory.name + " ";
  const auto number = [&](const char* key, Dimension dimension, double least, double most) {
    const double value = read_quantity(entry, {key, dimension, least, most});
    gpu.sources[prefix + key] = describe(read_provenance(entry.table(key), kStatuses));
    return value;
  };
  memory.capacity = Bytes(whole(number("capacity", Dimension::bytes, kKi, 1e12)));
  if (entry.has("bandwidth"))
    memory.bandwidth = BytesPerSecond(number("bandwidth", Dimension::byte_rate, 1e9, 1e17));
  return memory;
}

void read_numbers(const TomlTable& table, Gpu& gpu) {
  for (const NumberField& field : kNumbers) read_number(table, field, gpu);
  check_order(table, "sm_clock_base", gpu.sm_clock_base.value(), "sm_clock_boost",
              gpu.sm_clock.value());
  check_order(table, "hbm_bandwidth_sustained", gpu.hbm_bandwidth_sustained.value(),
              "hbm_bandwidth", gpu.hbm_bandwidth.value());
  check_order(table, "smem_per_block_max", gpu.smem_per_block_max.as_double(), "smem_per_sm",
              gpu.smem_per_sm.as_double());
  if (table.has("shared_cache")) gpu.shared_cache = table.text("shared_cache");
  if (!table.has("memory")) return;
  for (const TomlTable& entry : table.tables("memory")) {
    gpu.more_memory.push_back(read_memory(entry, gpu));
  }
}

}  // namespace

std::map<std::string, double> read_constants(const TomlTable& table) {
  table.refuse_other_keys({"calibration"});
  static_cast<void>(table.table("calibration"));
  std::map<std::string, double> values;
  for (const OwnConstant& own : read_calibration(table)) values[own.name] = own.provenance.value;
  return values;
}

Gpu read_gpu(const TomlTable& table, const ArchitectureLoader& architecture_of) {
  std::vector<std::string> known = {
      "name",       "aliases",     "title",   "architecture", "compute_capability",
      "calibrated", "calibration", "checked", "shared_cache", "memory"};
  for (const NumberField& field : kNumbers) known.emplace_back(field.key);
  table.refuse_other_keys(known);

  Gpu gpu;
  gpu.name = table.text("name");
  gpu.title = table.text("title");
  if (table.has("aliases")) gpu.aliases = table.texts("aliases");
  const std::string architecture = architecture_of_field(table, "architecture");
  gpu.calibrated = table.flag("calibrated");
  if (table.has("checked")) gpu.checks = read_checks(table);
  read_numbers(table, gpu);
  const std::vector<OwnConstant> own = read_calibration(table);
  set_architecture(gpu, architecture_of(architecture));
  gpu.compute_capability = table.word("compute_capability", gpu.architecture->compute_capabilities);
  replace_constants(own, gpu);
  return gpu;
}

void set_architecture(Gpu& gpu, std::shared_ptr<const Architecture> architecture) {
  gpu.architecture = std::move(architecture);
  gpu.constants = gpu.architecture->constants;
  L2Constants& l2 = gpu.constants.l2;
  if (gpu.l2_partitions <= 1) l2.capacity_fraction = l2.single_partition_fraction;
}

bool has_feature(const Gpu& gpu, Feature feature) {
  return gpu.architecture != nullptr && gpu.architecture->features.contains(feature);
}

Bytes effective_l2_capacity(const Gpu& gpu) {
  return Bytes(
      static_cast<std::int64_t>(gpu.l2_capacity.as_double() * gpu.constants.l2.capacity_fraction));
}

double constant_of(const Gpu& gpu, std::string_view name) {
  const ConstantInfo* constant = find_constant(name);
  FUSELINE_ASSERT(constant != nullptr, name);
  return value_of(*constant, gpu.constants);
}

void set_constant(Gpu& gpu, std::string_view name, double value) {
  const ConstantInfo* constant = find_constant(name);
  FUSELINE_ASSERT(constant != nullptr, name);
  FUSELINE_ASSERT(gpu.architecture != nullptr, gpu.name + " has no architecture");
  const ConstantOrigin& origin = gpu.architecture->origins.at(constant->name);
  if (!(value >= origin.least && value <= origin.most)) {  // also of NaN
    throw InputError(
        {.file = gpu.name,
         .field = fmt::format("calibration.{}", name),
         .value = fmt::format("{:g}", value),
         .message = "is outside the range of this constant",
         .allowed = fmt::format("a number from {:g} to {:g}", origin.least, origin.most)});
  }
  set_value(*constant, gpu.constants, value);
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
