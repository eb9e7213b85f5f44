#include "sim/report/listing.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/toml_file.h"
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

Listing list_models() {
  Listing l{{"name", "title", "layers", "D", "F", "H", "Hkv", "d", "V"},
            {{"name", Cells::text},
             {"title", Cells::text},
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
            {{"name", Cells::text},
             {"title", Cells::text},
             {"SMs"},
             {"TFLOP/s bf16"},
             {"HBM GB/s"},
             {"L2 MiB"},
             {"calibrated", Cells::text},
             {"standing", Cells::text}},
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
            {{"name", Cells::text},
             {"title", Cells::text},
             {"inherits", Cells::text},
             {"own constants"},
             {"compute", Cells::text},
             {"features", Cells::text}},
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
            {{"name", Cells::text},
             {"level", Cells::text},
             {"one for each", Cells::text},
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
            {{"name", Cells::text},
             {"imitates", Cells::text},
             {"version", Cells::text},
             {"fuses", Cells::text}},
            {}};
  for (const PolicyInfo& p : policies()) {
    const std::string version = p.unverified.empty() ? p.version : "unverified";
    l.rows.push_back({p.name, p.imitates, version, p.fuses});
  }
  return l;
}

Listing list_scenarios() {
  Listing l{{"name", "model", "gpu", "phase", "title"},
            {{"name", Cells::text},
             {"model", Cells::text},
             {"gpu", Cells::text},
             {"phase", Cells::text},
             {"title", Cells::text}},
            {}};
  for (const std::string& name : scenario_names()) {
    const Scenario s = load_scenario(name);
    l.rows.push_back({name, s.model, s.gpu, name_of(s.workload.phase), s.title});
  }
  return l;
}

Listing list_operators() {
  Listing l{{"name", "class", "needs", "formula"},
            {{"name", Cells::text},
             {"class", Cells::text},
             {"needs", Cells::text},
             {"formula", Cells::text}},
            {}};
  for (const Operator* o : all_operators()) {
    l.rows.push_back({o->name.value, name_of(o->op_class), name_of(o->locality), o->formula.value});
  }
  return l;
}

Listing list_blocks() {
  Listing l{{"name", "parameters", "computes"},
            {{"name", Cells::text}, {"parameters", Cells::text}, {"computes", Cells::text}},
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
            {{"name", Cells::text},
             {"element", Cells::text},
             {"scale", Cells::text},
             {"group", Cells::text},
             {"bits a weight", Cells::text},
             {"stores", Cells::text},
             {"source", Cells::text}},
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
            {{"name", Cells::text},
             {"element", Cells::text},
             {"scale", Cells::text},
             {"bits a number", Cells::text},
             {"stores", Cells::text},
             {"source", Cells::text}},
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
            {{"name", Cells::text},
             {"element", Cells::text},
             {"scale", Cells::text},
             {"group", Cells::text},
             {"weights", Cells::text},
             {"stores", Cells::text},
             {"source", Cells::text}},
            {}};
  for (const ActivationFormat* f : all_activation_formats()) {
    const WeightFormat& rows = f->rows;
    l.rows.push_back({rows.name.value, name_of(rows.element), name_of(rows.scale),
                      rows.group == 0 ? "row" : std::to_string(rows.group), f->weights.value,
                      rows.about.value, rows.source.value});
  }
  return l;
}

Listing list_distributions() {
  Listing l{{"name", "title", "date", "source"},
            {{"name", Cells::text},
             {"title", Cells::text},
             {"date", Cells::text},
             {"source", Cells::text}},
            {}};
  for (const std::string& name : data_file_names("distributions")) {
    const TomlTable file = TomlTable::load(data_dir() / "distributions" / (name + ".toml"));
    l.rows.push_back({name, file.text("title"), file.text("date"), file.text("source")});
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
                             {"distributions", list_distributions},
                             {"operators", list_operators},
                             {"formats", list_formats},
                             {"cache-formats", list_cache_formats},
                             {"activation-formats", list_activation_formats}};

}  // namespace

const std::vector<std::string>& listing_topics() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Topic& t : kTopics) out.emplace_back(t.name);
    return out;
  }();
  return names;
}

Listing listing_of(const std::string& topic) {
  const auto* const found = std::find_if(std::begin(kTopics), std::end(kTopics),
                                         [&](const Topic& t) { return topic == t.name; });
  FUSELINE_ASSERT(found != std::end(kTopics), topic);
  return found->list();
}

std::string listing_json(const std::string& topic, const Listing& l) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& row : l.rows) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < l.keys.size(); ++c) {
      const bool is_number = l.columns[c].cells == Cells::numbers;
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

}  // namespace fuseline
