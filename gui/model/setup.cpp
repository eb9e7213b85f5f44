#include "gui/model/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/read_once.h"
#include "gui/model/text.h"
#include "model/config/model_files.h"
#include "sim/gpu/what_if.h"

namespace fuseline::gui {

namespace {

constexpr std::int64_t kDefaultTokens = 2048;

struct NumberUnit {
  const char* name;
  double factor;
};

// How one factor of WhatIf is shown and typed.
struct SetupQuantity {
  const char* key;
  const char* label;
  const char* source;  // key of Gpu::sources
  double (*value)(const Gpu&);
  std::string (*text)(const Gpu&);
  std::array<NumberUnit, 2> units;  // the first is meant when none is typed
};

constexpr double kMiB = 1024.0 * 1024.0;

const std::array<SetupQuantity, 5> kQuantities = {{
    {"hbm_bandwidth",
     "HBM bandwidth",
     "hbm_bandwidth",
     [](const Gpu& g) { return g.hbm_bandwidth.value(); },
     [](const Gpu& g) { return short_rate(g.hbm_bandwidth); },
     {{{"TB/s", 1e12}, {"GB/s", 1e9}}}},
    {"l2_bandwidth",
     "L2 bandwidth",
     "l2_bandwidth",
     [](const Gpu& g) { return g.l2_bandwidth.value(); },
     [](const Gpu& g) { return short_rate(g.l2_bandwidth); },
     {{{"TB/s", 1e12}, {"GB/s", 1e9}}}},
    {"l2_capacity",
     "L2 capacity",
     "l2_capacity",
     [](const Gpu& g) { return g.l2_capacity.as_double(); },
     [](const Gpu& g) { return fmt::format("{:.4g} MiB", g.l2_capacity.as_double() / kMiB); },
     {{{"MiB", kMiB}, {"MB", 1e6}}}},
    {"sm_count",
     "SMs",
     "sm_count",
     [](const Gpu& g) { return static_cast<double>(g.sm_count); },
     [](const Gpu& g) { return fmt::format("{} SMs", g.sm_count); },
     {{{"SMs", 1}, {"1", 1}}}},
    {"sm_clock",
     "SM clock",
     "sm_clock_boost",
     [](const Gpu& g) { return g.sm_clock.value(); },
     [](const Gpu& g) { return fmt::format("{:.0f} MHz", g.sm_clock.value() / 1e6); },
     {{{"MHz", 1e6}, {"GHz", 1e9}}}},
}};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

}  // namespace

bool operator==(const Setup& a, const Setup& b) { return cache_key(a) == cache_key(b); }

PredictionCase resolve(const Setup& setup) {
  PredictionCase c;
  c.model = setup.change == BlockChange{} && !setup.model.empty()
                ? model_read_once(setup.model)
                : load_model(setup.model, setup.change);
  c.gpu = with_what_if(gpu_read_once(setup.gpu), setup.what_if);
  c.workload = setup.workload;
  Formats& formats = c.workload.formats;
  if (!formats.weights.quantised()) {
    formats.weights = c.model.formats.weights;
    if (!formats.activations.quantised()) formats.activations = c.model.formats.activations;
  }
  if (!formats.cache.quantised()) formats.cache = c.model.formats.cache;
  c.fidelity = setup.fidelity;
  check_workload(c.workload, c.model);
  return c;
}

std::string cache_key(const Setup& s) {
  const Workload& w = s.workload;
  std::string key =
      fmt::format("{}\n{}\n{} {} {} {} {} {} {} {} {}", s.model, s.gpu, name_of(w.phase), w.batch,
                  w.seq, w.context, name_of(w.dtype), weights_text(w), activations_text(w),
                  cache_text(w), name_of(s.fidelity));
  for (const WhatIfField& field : kWhatIfFields) key += fmt::format(" {}", s.what_if.*field.factor);
  key += "\n" + routing_text(w.routing);
  key += "\n" + s.change.block + "\n" + s.change.text;
  return key;
}

Setup with_phase(Setup setup, Phase phase) {
  Workload& w = setup.workload;
  if ((phase == Phase::decode) != (w.phase == Phase::decode)) {
    w.seq = phase == Phase::decode ? 1 : kDefaultTokens;
    w.context = phase == Phase::decode ? kDefaultTokens : 0;
  }
  w.phase = phase;
  return setup;
}

std::string describe(const PredictionCase& c) {
  const std::string& model = c.model.title.empty() ? c.model.name : c.model.title;
  return fmt::format("{} · {} · {}", model, c.gpu.title, fuseline::describe(c.workload));
}

Setup from_scenario(const ScenarioSetup& s) {
  return {.model = s.model,
          .gpu = s.gpu,
          .what_if = s.what_if,
          .workload = s.workload,
          .fidelity =
              s.fidelity == name_of(Fidelity::roofline) ? Fidelity::roofline : Fidelity::hierarchy,
          .change = s.change};
}

ScenarioSetup to_scenario(const Setup& s) {
  return {.model = s.model,
          .gpu = s.gpu,
          .what_if = s.what_if,
          .workload = s.workload,
          .fidelity = name_of(s.fidelity),
          .change = s.change};
}

std::vector<WhatIfSlider> what_if_sliders(const Setup& setup) {
  const Gpu base = gpu_read_once(setup.gpu);
  const Gpu changed = with_what_if(base, setup.what_if);
  std::vector<WhatIfSlider> sliders;
  for (std::size_t i = 0; i < kQuantities.size(); ++i) {
    const SetupQuantity& q = kQuantities[i];
    const auto source = base.sources.find(q.source);
    sliders.push_back({q.key, q.label, setup.what_if.*kWhatIfFields[i].factor, q.text(changed),
                       q.text(base), source == base.sources.end() ? "" : source->second});
  }
  return sliders;
}

double factor_of_value(const Setup& setup, const std::string& key, const std::string& text) {
  const auto* q =
      std::ranges::find_if(kQuantities, [&](const SetupQuantity& x) { return key == x.key; });
  FUSELINE_ASSERT(q != kQuantities.end(), key);
  const std::string typed = trimmed(text);
  const auto fail = [&](const std::string& message) {
    throw InputError({.field = q->label,
                      .value = text,
                      .message = message,
                      .allowed = fmt::format("a number in {} or {}, from {} to {} times {}",
                                             q->units[0].name, q->units[1].name, kLeastFactor,
                                             kMostFactor, q->text(gpu_read_once(setup.gpu)))});
  };
  double number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (error != std::errc() || !(number > 0)) fail("is not such a number");
  const std::string unit = trimmed(std::string_view(end, typed.data() + typed.size()));
  double scale = unit.empty() ? q->units[0].factor : 0;
  for (const NumberUnit& u : q->units) {
    if (unit == u.name) scale = u.factor;
  }
  if (scale == 0) fail("has another unit");
  const double factor = number * scale / q->value(gpu_read_once(setup.gpu));
  if (factor < kLeastFactor || factor > kMostFactor) fail("is out of range");
  return factor;
}

}  // namespace fuseline::gui
