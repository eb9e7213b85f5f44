// fuseline list: what the other commands can be asked about.
#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/table.h"
#include "model/activation_formats/activation_format.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block_text.h"
#include "model/cache_formats/cache_format.h"
#include "model/config/model_files.h"
#include "model/config/scenario.h"
#include "model/formats/weight_format.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/memory_levels.h"
#include "sim/gpu/standing.h"

namespace fuseline {

namespace {

// A list as cells; the keys are those of JSON and CSV, the headers those of the table.
struct Listing {
  std::vector<std::string> keys;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

Listing list_models() {
  Listing l{{"name", "title", "layers", "D", "F", "H", "Hkv", "d", "V"},
            {{"name", Align::left},
             {"title", Align::left},
             {"layers"},
             {"D"},
             {"F"},
             {"H"},
             {"Hkv"},
             {"d"},
             {"V"}},
            {}};
  for (const std::string& name : model_names()) {
    const ModelConfig c = load_model(name);
    std::vector<std::string> row = {name, c.title};
    for (const std::int64_t value : {c.layers, c.D, c.F, c.H, c.Hkv, c.d, c.V}) {
      row.push_back(std::to_string(value));
    }
    l.rows.push_back(std::move(row));
  }
  return l;
}

Listing list_gpus() {
  Listing l{{"name", "title", "sms", "tensor_bf16_tflops", "hbm_gb_per_s", "l2_mib", "calibrated",
             "standing"},
            {{"name", Align::left},
             {"title", Align::left},
             {"SMs"},
             {"TFLOP/s bf16"},
             {"HBM GB/s"},
             {"L2 MiB"},
             {"calibrated", Align::left},
             {"standing", Align::left}},
            {}};
  for (const std::string& name : gpu_names()) {
    const Gpu g = load_gpu(name);
    l.rows.push_back({name, g.title, std::to_string(g.sm_count),
                      fmt::format("{:.0f}", g.tensor_bf16.value() / 1e12),
                      fmt::format("{:.0f}", g.hbm_bandwidth.value() / 1e9),
                      fmt::format("{:.0f}", g.l2_capacity.as_double() / (1 << 20)),
                      g.calibrated ? "yes" : "no", name_of(standing_of(g))});
  }
  return l;
}

Listing list_architectures() {
  Listing l{{"name", "title", "inherits", "own_constants", "compute_capabilities", "features"},
            {{"name", Align::left},
             {"title", Align::left},
             {"inherits", Align::left},
             {"own constants"},
             {"compute", Align::left},
             {"features", Align::left}},
            {}};
  for (const std::string& name : architecture_names()) {
    const auto a = load_architecture(name);
    std::vector<std::string> features;
    for (const Feature feature : a->features) features.emplace_back(name_of(feature));
    const auto own = std::count_if(a->origins.begin(), a->origins.end(), [](const auto& origin) {
      return origin.second.number.status != "inherited";
    });
    l.rows.push_back({name, a->title, a->inherits, std::to_string(own),
                      fmt::format("{}", fmt::join(a->compute_capabilities, " ")),
                      fmt::format("{}", fmt::join(features, " "))});
  }
  return l;
}

// Zero where nobody gives a bandwidth.
Listing list_memory() {
  Listing l{{"name", "level", "scope", "instances", "kib_each", "gb_per_s"},
            {{"name", Align::left},
             {"level", Align::left},
             {"one for each", Align::left},
             {"pieces"},
             {"KiB each"},
             {"GB/s of all"}},
            {}};
  for (const std::string& name : gpu_names()) {
    for (const GpuMemory& m : memory_levels(load_gpu(name))) {
      l.rows.push_back({name, m.name, name_of(m.scope), std::to_string(m.instances),
                        std::to_string(m.capacity.value() / 1024),
                        fmt::format("{:.0f}", m.bandwidth.value() / 1e9)});
    }
  }
  return l;
}

Listing list_policies() {
  Listing l{{"name", "imitates", "version", "fuses"},
            {{"name", Align::left},
             {"imitates", Align::left},
             {"version", Align::left},
             {"fuses", Align::left}},
            {}};
  for (const PolicyInfo& p : policies()) {
    const std::string version = p.unverified.empty() ? p.version : "unverified";
    l.rows.push_back({p.name, p.imitates, version, p.fuses});
  }
  return l;
}

Listing list_scenarios() {
  Listing l{{"name", "model", "gpu", "phase", "title"},
            {{"name", Align::left},
             {"model", Align::left},
             {"gpu", Align::left},
             {"phase", Align::left},
             {"title", Align::left}},
            {}};
  for (const std::string& name : scenario_names()) {
    const Scenario s = load_scenario(name);
    l.rows.push_back({name, s.model, s.gpu, name_of(s.workload.phase), s.title});
  }
  return l;
}

Listing list_operators() {
  Listing l{{"name", "class", "needs", "formula"},
            {{"name", Align::left},
             {"class", Align::left},
             {"needs", Align::left},
             {"formula", Align::left}},
            {}};
  for (const Operator* o : all_operators()) {
    l.rows.push_back({o->name.value, name_of(o->op_class), name_of(o->locality), o->formula.value});
  }
  return l;
}

Listing list_blocks() {
  Listing l{{"name", "parameters", "computes"},
            {{"name", Align::left}, {"parameters", Align::left}, {"computes", Align::left}},
            {}};
  for (const std::string& name : block_names()) {
    const auto text = load_block_text(name);
    l.rows.push_back({name, fmt::format("{}", fmt::join(parameter_names(*text), ", ")),
                      fmt::format("{}", fmt::join(text->file().remarks, " "))});
  }
  return l;
}

Listing list_formats() {
  Listing l{{"name", "element", "scale", "group", "bits_per_weight", "stores", "source"},
            {{"name", Align::left},
             {"element", Align::left},
             {"scale", Align::left},
             {"group", Align::left},
             {"bits a weight", Align::left},
             {"stores", Align::left},
             {"source", Align::left}},
            {}};
  for (const std::string& name : weight_format_names()) {
    const StoredWeight weight = parse_stored_weight(name, "", "");
    const WeightFormat& f = *weight.format;
    const std::string columns = f.group == 0 ? "row" : std::to_string(f.group);
    const std::string group =
        f.group_rows > 1 ? fmt::format("{} x {}", f.group_rows, columns) : columns;
    // Of rows of 4,096 columns, as they are usual.
    const double bits =
        size_of(f.element).as_double() * 8 + weight.scale_bytes_per_element(4096) * 8;
    l.rows.push_back({name, name_of(f.element), name_of(f.scale),
                      group + (f.any_group ? " or any" : ""), fmt::format("{:.3f}", bits),
                      f.about.value, f.source.value});
  }
  return l;
}

Listing list_cache_formats() {
  Listing l{{"name", "element", "scale", "bits_per_number", "stores", "source"},
            {{"name", Align::left},
             {"element", Align::left},
             {"scale", Align::left},
             {"bits a number", Align::left},
             {"stores", Align::left},
             {"source", Align::left}},
            {}};
  constexpr double kHeadWidth = 128;  // as it is usual
  for (const CacheFormat* f : all_cache_formats()) {
    const StoredCache cache{f};
    const double scale =
        cache.scaled() ? size_of(cache.scale_type()).as_double() * 8 / kHeadWidth : 0;
    l.rows.push_back({f->name.value, name_of(f->element), cache.scaled() ? name_of(f->scale) : "",
                      fmt::format("{:.3f}", size_of(f->element).as_double() * 8 + scale),
                      f->about.value, f->source.value});
  }
  return l;
}

Listing list_activation_formats() {
  Listing l{{"name", "element", "scale", "group", "weights", "stores", "source"},
            {{"name", Align::left},
             {"element", Align::left},
             {"scale", Align::left},
             {"group", Align::left},
             {"weights", Align::left},
             {"stores", Align::left},
             {"source", Align::left}},
            {}};
  for (const ActivationFormat* f : all_activation_formats()) {
    const WeightFormat& rows = f->rows;
    l.rows.push_back({rows.name.value, name_of(rows.element), name_of(rows.scale),
                      rows.group == 0 ? "row" : std::to_string(rows.group), f->weights.value,
                      rows.about.value, rows.source.value});
  }
  return l;
}

struct Topic {
  const char* name;
  Listing (*list)();
};
constexpr Topic kTopics[] = {{"models", list_models},
                             {"blocks", list_blocks},
                             {"gpus", list_gpus},
                             {"architectures", list_architectures},
                             {"memory", list_memory},
                             {"policies", list_policies},
                             {"scenarios", list_scenarios},
                             {"operators", list_operators},
                             {"formats", list_formats},
                             {"cache-formats", list_cache_formats},
                             {"activation-formats", list_activation_formats}};

// What CSV and JSON keep: "calibrated" says a part of "standing", and a format's text names its
// types.
Listing for_people(Listing l) {
  for (const char* key : {"calibrated", "element", "scale", "source"}) {
    const auto at = std::find(l.keys.begin(), l.keys.end(), key) - l.keys.begin();
    if (at == static_cast<std::ptrdiff_t>(l.keys.size())) continue;
    l.keys.erase(l.keys.begin() + at);
    l.columns.erase(l.columns.begin() + at);
    for (std::vector<std::string>& row : l.rows) row.erase(row.begin() + at);
  }
  return l;
}

// Text columns are broken into lines where the table would be too wide: the last one gets what the
// others leave, and none of the others more than a third of the width.
std::string table_with_text(const Listing& l) {
  const std::size_t last = l.columns.size() - 1;
  std::vector<std::size_t> widths;
  std::size_t left = kTableWidth;
  for (std::size_t c = 0; c < last; ++c) {
    std::size_t width = display_width(l.columns[c].header);
    for (const auto& row : l.rows) width = std::max(width, display_width(row[c]));
    widths.push_back(std::min(width, kTableWidth / 3));
    left -= widths.back() + 2;
  }
  widths.push_back(left);
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : l.rows) {
    const std::size_t first = rows.size();
    for (std::size_t c = 0; c <= last; ++c) {
      const std::vector<std::string> lines = broken(row[c], widths[c]);
      if (rows.size() < first + lines.size()) {
        rows.resize(first + lines.size(), std::vector<std::string>(last + 1));
      }
      for (std::size_t i = 0; i < lines.size(); ++i) rows[first + i][c] = lines[i];
    }
  }
  return format_table(l.columns, rows);
}

std::string as_json(const std::string& topic, const Listing& l) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& row : l.rows) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < l.keys.size(); ++c) {
      const bool is_number = l.columns[c].align == Align::right;
      if (is_number) {
        entry[l.keys[c]] = std::stoll(row[c]);
      } else if (l.keys[c] == "calibrated") {
        entry[l.keys[c]] = row[c] == "yes";
      } else {
        entry[l.keys[c]] = row[c];
      }
    }
    list.push_back(std::move(entry));
  }
  return json_text(nlohmann::ordered_json{{topic, std::move(list)}});
}

std::string as_csv(const Listing& l) {
  std::string out = fmt::format("{}\n", fmt::join(l.keys, ","));
  for (const auto& row : l.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) out += (c > 0 ? "," : "") + csv_cell(row[c]);
    out += "\n";
  }
  return out;
}

}  // namespace

CommandResult list_command(const Arguments& args) {
  std::vector<std::string> topics;
  std::optional<std::string> format;
  Options options(
      "list",
      "What can be named: models, blocks, gpus, policies, scenarios, operators, formats, "
      "cache-formats.",
      {"fuseline list gpus", "fuseline list models --format json"});
  options.positional("TOPIC", "models, blocks, gpus, policies, operators, formats, ...", topics, 1);
  options.text("--format", "table|json|csv", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  std::vector<std::string> names;
  for (const Topic& t : kTopics) names.emplace_back(t.name);
  if (topics.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "TOPIC",
                      .message = "is missing",
                      .allowed = fmt::format("{}", fmt::join(names, ", "))});
  }
  const std::string& name = parse_word("TOPIC", topics.front(), names);
  const Topic& topic = *std::find_if(std::begin(kTopics), std::end(kTopics),
                                     [&](const Topic& t) { return name == t.name; });
  const Listing listing = topic.list();
  if (chosen == "json") return {as_json(name, listing), {}, ExitStatus::done};
  if (chosen == "csv") return {as_csv(listing), {}, ExitStatus::done};
  return {table_with_text(for_people(listing)), {}, ExitStatus::done};
}

}  // namespace fuseline
