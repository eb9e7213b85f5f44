#include "sim/measured/measurement.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "base/toml_file.h"
#include "model/activation_formats/stored_activation.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerMillisecond = 1e-3;
constexpr double kSecondsPerMicrosecond = 1e-6;
constexpr double kHertzPerMegahertz = 1e6;

SpreadOfTimes read_times(const CsvTable& csv, std::size_t row, const std::string& unit,
                         double seconds_per_unit) {
  const std::string median = unit + "_median";
  const SpreadOfTimes times = {
      .median = csv.positive(row, median) * Seconds(seconds_per_unit),
      .least = csv.positive(row, unit + "_min") * Seconds(seconds_per_unit),
      .most = csv.positive(row, unit + "_max") * Seconds(seconds_per_unit)};
  if (times.median < times.least || times.median > times.most) {
    csv.fail(row, median, "the median lies outside minimum and maximum", "min <= median <= max");
  }
  return times;
}

// Optional columns: nothing where the header lacks the column or the cell is empty.
bool has_cell(const CsvTable& csv, std::size_t row, std::string_view column) {
  return csv.has_column(column) && !csv.text(row, column).empty();
}

std::string text_or_empty(const CsvTable& csv, std::size_t row, std::string_view column) {
  return csv.has_column(column) ? csv.text(row, column) : std::string();
}

std::optional<Bytes> bytes_if_there(const CsvTable& csv, std::size_t row, std::string_view column) {
  if (!has_cell(csv, row, column)) return std::nullopt;
  return Bytes(csv.whole(row, column));
}

// A trace without counters leaves the cells empty.
Bytes counted_bytes(const CsvTable& csv, std::size_t row, std::string_view column) {
  return csv.text(row, column).empty() ? Bytes(0) : Bytes(csv.whole(row, column));
}

template <class Quantity>
std::optional<Quantity> positive_if_there(const CsvTable& csv, std::size_t row,
                                          std::string_view column, double base_units_per_unit) {
  if (!has_cell(csv, row, column)) return std::nullopt;
  return Quantity(csv.positive(row, column) * base_units_per_unit);
}

// A relative error; 0 is one too.
std::optional<double> error_if_there(const CsvTable& csv, std::size_t row,
                                     std::string_view column) {
  if (!has_cell(csv, row, column)) return std::nullopt;
  const std::string& cell = csv.text(row, column);
  if (cell.find_first_not_of("0.") == std::string::npos && cell != ".") return 0.0;
  return csv.positive(row, column);
}

// The columns model, execution, phase, batch, seq, context that block.csv and kernels.csv share,
// and the optional dtype, weights, activations, kv and routing.
BlockCase read_case(const CsvTable& csv, std::size_t row) {
  BlockCase block{
      .model = csv.text(row, "model"), .execution = csv.text(row, "execution"), .workload = {}};
  if (block.model.empty()) csv.fail(row, "model", "is empty", "a model's name");
  if (block.execution.empty()) csv.fail(row, "execution", "is empty", "a policy's name");
  const std::string& phase = csv.text(row, "phase");
  if (phase != "forward" && phase != "train" && phase != "decode") {
    csv.fail(row, "phase", "there is no such phase", "forward, train, decode");
  }
  Workload& w = block.workload;
  w.phase = parse_phase(phase, "phase");
  w.batch = csv.whole(row, "batch", 1);
  w.seq = csv.whole(row, "seq", 1);
  w.context = csv.whole(row, "context", 0);
  if (w.phase == Phase::decode && w.context < w.seq) {
    csv.fail(row, "context", "the context is shorter than the new tokens",
             "at least seq = " + std::to_string(w.seq));
  }
  if (has_cell(csv, row, "dtype")) {
    const std::string& dtype = csv.text(row, "dtype");
    if (dtype != "bf16" && dtype != "fp16" && dtype != "fp32") {
      csv.fail(row, "dtype", "there is no such type", "bf16, fp16, fp32");
    }
    w.dtype = parse_dtype(dtype, "dtype");
  }
  const auto format = [&](const char* column, auto& into, auto parse) {
    if (!has_cell(csv, row, column)) return;
    try {
      into = parse(csv.text(row, column), column, name_of(w.dtype));
    } catch (const InputError& error) {
      csv.fail(row, column, error.problem().message, error.problem().allowed);
    }
  };
  format("weights", w.formats.weights, parse_stored_weight);
  format("activations", w.formats.activations, parse_stored_activation);
  format("kv", w.formats.cache, parse_stored_cache);
  if (has_cell(csv, row, "routing")) {
    try {
      w.routing = parse_routing_line(csv.text(row, "routing"), "routing");
    } catch (const InputError& error) {
      csv.fail(row, "routing", error.problem().message, error.problem().allowed);
    }
  }
  return block;
}

void read_blocks(const CsvTable& csv, std::vector<MeasuredBlock>& out) {
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    out.push_back(
        {.block = read_case(csv, row),
         .time = read_times(csv, row, "ms", kSecondsPerMillisecond),
         .timer = text_or_empty(csv, row, "timer"),
         .sm_clock_median = positive_if_there<Hertz>(csv, row, "sm_mhz_median", kHertzPerMegahertz),
         .sm_clock_least = positive_if_there<Hertz>(csv, row, "sm_mhz_min", kHertzPerMegahertz),
         .power = positive_if_there<Watts>(csv, row, "power_w", 1.0),
         .throttle = text_or_empty(csv, row, "throttle"),
         .checked = error_if_there(csv, row, "checked"),
         .hbm_read = bytes_if_there(csv, row, "hbm_read_bytes"),
         .hbm_write = bytes_if_there(csv, row, "hbm_write_bytes"),
         .l2 = bytes_if_there(csv, row, "l2_bytes")});
  }
}

std::optional<KernelKind> read_kind(const CsvTable& csv, std::size_t row) {
  if (!has_cell(csv, row, "kind")) return std::nullopt;
  const std::optional<KernelKind> kind = kernel_kind_of(csv.text(row, "kind"));
  if (!kind) {
    csv.fail(row, "kind", "there is no such kind",
             "gemm, attention, norm, pointwise, reduction, block");
  }
  return kind;
}

void read_kernels(const CsvTable& csv, Measurements& out) {
  std::int64_t last_order = -1;
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    BlockCase block = read_case(csv, row);
    const std::int64_t order = csv.whole(row, "order", 0);
    if (out.traces.empty() || !same_case(out.traces.back().block, block)) {
      if (std::any_of(out.traces.begin(), out.traces.end(),
                      [&](const MeasuredTrace& t) { return same_case(t.block, block); })) {
        csv.fail(row, "order", "the block's kernels do not stand together",
                 "all kernels of one block in consecutive lines");
      }
      out.traces.push_back({std::move(block), {}});
    } else if (order <= last_order) {
      csv.fail(row, "order", "the kernels are out of order",
               "more than " + std::to_string(last_order));
    }
    last_order = order;
    out.traces.back().kernels.push_back(
        {.site = csv.text(row, "operator"),
         .kernel = csv.text(row, "kernel"),
         .time = csv.positive(row, "us") * Seconds(kSecondsPerMicrosecond),
         .hbm_read = counted_bytes(csv, row, "dram_read_bytes"),
         .hbm_write = counted_bytes(csv, row, "dram_write_bytes"),
         .l2 = counted_bytes(csv, row, "l2_bytes"),
         .grid = text_or_empty(csv, row, "grid"),
         .block = text_or_empty(csv, row, "block"),
         .recorded_kind = read_kind(csv, row),
         .tile = text_or_empty(csv, row, "tile"),
         .time_in_graph =
             positive_if_there<Seconds>(csv, row, "us_graph", kSecondsPerMicrosecond)});
  }
}

void read_gemms(const CsvTable& csv, Measurements& out) {
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    out.gemms.push_back({.m = csv.whole(row, "m", 1),
                         .n = csv.whole(row, "n", 1),
                         .k = csv.whole(row, "k", 1),
                         .time = read_times(csv, row, "us", kSecondsPerMicrosecond)});
  }
}

// The kind of table is told by a column that only it has; other frameworks' blocks by its name.
void read_table(const std::string& path, Measurements& out) {
  const CsvTable csv(path);
  if (csv.has_column("dram_read_bytes")) return read_kernels(csv, out);
  if (csv.has_column("ms_median"))
    return read_blocks(csv, fs::path(path).filename() == "rivals.csv" ? out.rivals : out.blocks);
  if (csv.has_column("us_median") && csv.has_column("m")) return read_gemms(csv, out);
  throw InputError({.file = path,
                    .message = "the header is none of a measurement's",
                    .allowed = "the columns of block.csv, rivals.csv, kernels.csv or gemm.csv",
                    .line = 1});
}

// One text or a list of them.
std::vector<std::string> read_texts(const TomlTable& table, const char* name) {
  if (!table.has(name)) return {};
  if (table.is_text(name)) return {table.text(name)};
  return table.texts(name);
}

MeasurementMeta read_meta(const fs::path& path) {
  const TomlTable table = TomlTable::load(path);
  table.refuse_other_keys({"title", "gpu", "device", "driver", "toolkit", "framework", "date",
                           "clocks", "command", "version", "counters", "notes", "raster_clusters",
                           "launches"});
  const std::string launches = table.text_or("launches", "");
  if (!launches.empty() && launches != kOverlappingLaunches)
    table.fail("launches", "is no way that a measurement's kernels can be launched",
               fmt::format("{}, or no such field", kOverlappingLaunches));
  std::optional<std::int64_t> clusters;
  if (table.has("raster_clusters")) clusters = table.whole("raster_clusters", {0, 1024});
  const auto field = [&](const char* name) { return table.text_or(name, ""); };
  return {.title = field("title"),
          .gpu = field("gpu"),
          .device = field("device"),
          .driver = field("driver"),
          .toolkit = field("toolkit"),
          .framework = field("framework"),
          .date = field("date"),
          .clocks = field("clocks"),
          .command = fmt::format("{}", fmt::join(read_texts(table, "command"), "\n")),
          .version = field("version"),
          .counters = field("counters"),
          .notes = read_texts(table, "notes"),
          .raster_clusters = clusters,
          .launches = launches};
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::string BlockCase::label() const {
  const Workload& w = workload;
  std::string text = model + " " + execution + " " + name_of(w.phase) + " " +
                     std::to_string(w.batch) + "x" + std::to_string(w.seq);
  if (w.phase == Phase::decode) text += " of " + std::to_string(w.context);
  if (w.dtype != Dtype::bf16) text += std::string(" ") + name_of(w.dtype);
  if (w.formats.weights.quantised()) text += " weights " + w.formats.weights.name();
  if (w.formats.activations.quantised()) text += " activations " + w.formats.activations.name();
  if (w.formats.cache.quantised()) text += " cache " + w.formats.cache.name();
  if (w.routing.given()) text += " routing " + w.routing.name;
  return text;
}

std::optional<KernelKind> kernel_kind_of(std::string_view name) {
  for (const KernelKind kind : all_kernel_kinds()) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

KernelKind MeasuredKernel::kind() const {
  if (recorded_kind) return *recorded_kind;
  // Order matters: "splitKreduce" belongs to a GEMM library and is a reduction all the same. The
  // reduction that merges split attention belongs to the attention.
  struct Rule {
    std::string_view part;
    KernelKind kind;
  };
  static constexpr std::array<Rule, 15> kRules = {{
      {"splitKreduce", KernelKind::reduction},
      {"lean_reduction", KernelKind::attention},
      {"reduce_kernel", KernelKind::reduction},
      {"compute_dot_do_o", KernelKind::reduction},
      {"nvjet", KernelKind::gemm},
      {"gemm", KernelKind::gemm},
      {"cutlass", KernelKind::gemm},
      {"gemv", KernelKind::gemm},
      {"flash", KernelKind::attention},
      {"fmha", KernelKind::attention},
      {"sdpa_sm", KernelKind::attention},
      {"layer_norm_kernel", KernelKind::norm},
      {"rms_norm_kernel", KernelKind::norm},
      {"triton_red", KernelKind::norm},
      {"triton_per", KernelKind::norm},
  }};
  for (const Rule& rule : kRules) {
    if (contains(kernel, rule.part)) return rule.kind;
  }
  return KernelKind::pointwise;
}

Bytes MeasuredTrace::hbm_read() const {
  Bytes sum;
  for (const MeasuredKernel& k : kernels) sum += k.hbm_read;
  return sum;
}

Bytes MeasuredTrace::hbm_write() const {
  Bytes sum;
  for (const MeasuredKernel& k : kernels) sum += k.hbm_write;
  return sum;
}

Measurements load_measurements(const std::string& path) {
  Measurements out;
  out.path = path;
  const auto is_there = [](const fs::path& file) {
    return kind_of_path(file) != PathKind::missing;
  };
  const bool is_folder = kind_of_path(path) == PathKind::folder;
  if (is_folder) {
    bool found = false;
    for (const char* name : {"block.csv", "kernels.csv", "gemm.csv"}) {
      const fs::path file = fs::path(path) / name;
      if (!is_there(file)) continue;
      read_table(file.string(), out);
      found = true;
    }
    if (!found) {
      throw InputError({.file = path,
                        .message = "the folder holds no measurement",
                        .allowed = "block.csv, kernels.csv or gemm.csv in it"});
    }
    const fs::path rivals = fs::path(path) / "rivals.csv";
    if (is_there(rivals)) read_table(rivals.string(), out);
  } else {
    read_table(path, out);
  }
  const fs::path meta = (is_folder ? fs::path(path) : fs::path(path).parent_path()) / "meta.toml";
  if (is_there(meta)) out.meta = read_meta(meta);
  return out;
}

bool same_case(const BlockCase& a, const BlockCase& b) {
  return a.model == b.model && a.execution == b.execution && a.workload.phase == b.workload.phase &&
         a.workload.batch == b.workload.batch && a.workload.seq == b.workload.seq &&
         a.workload.kv_tokens() == b.workload.kv_tokens() && a.workload.dtype == b.workload.dtype &&
         a.workload.formats == b.workload.formats && a.workload.routing == b.workload.routing;
}

std::optional<MeasuredBlock> find_block(const Measurements& all, const BlockCase& wanted) {
  for (const MeasuredBlock& b : all.blocks) {
    if (same_case(b.block, wanted)) return b;
  }
  return std::nullopt;
}

std::optional<MeasuredTrace> find_trace(const Measurements& all, const BlockCase& wanted) {
  for (const MeasuredTrace& t : all.traces) {
    if (same_case(t.block, wanted)) return t;
  }
  return std::nullopt;
}

}  // namespace fuseline
