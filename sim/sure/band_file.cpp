#include "sim/sure/band_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/toml_file.h"
#include "base/toml_text.h"
#include "model/plan.h"
#include "sim/gpu/provenance.h"
#include "sim/sure/traits.h"

namespace fuseline {

namespace {

// exp(3) = 20 times off: no band of a useful model is wider.
constexpr double kWidestBand = 3;
constexpr double kMostWidening = 20;
constexpr std::int64_t kMostMachines = 1000;
constexpr double kRounding = 1e-4;
constexpr double kLargestBeyond = 10, kMostAmount = 1e18;
constexpr double kSteepest = 100, kLargestTrait = 100;
constexpr std::int64_t kMostBandRows = 10'000'000;

const std::vector<std::string> kPhases = {"forward", "decode", "train"};
const std::vector<std::string> kMakers = {"own", "library", "mixed"};
const std::vector<std::string> kSizes = {"short", "small", "large"};

const std::vector<std::string>& kernel_words() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> words = {"dense", "scores", "experts", "scans"};
    for (const KernelKind kind : all_kernel_kinds()) words.emplace_back(name_of(kind));
    return words;
  }();
  return all;
}

std::string word_or_any(const TomlTable& table, const char* key,
                        const std::vector<std::string>& words) {
  return table.has(key) ? table.word(key, words) : std::string();
}

BandClass read_class(const TomlTable& table) {
  table.refuse_other_keys({"what", "phase", "maker", "kernels", "size", "apart", "low", "high",
                           "slope", "rows", "models", "least", "most"});
  BandClass c;
  c.of = {.what = table.word("what", band_subjects()),
          .phase = word_or_any(table, "phase", kPhases),
          .maker = word_or_any(table, "maker", kMakers),
          .kernels = word_or_any(table, "kernels", kernel_words()),
          .size = word_or_any(table, "size", kSizes),
          .apart = word_or_any(table, "apart", kinds_judged_apart())};
  c.low = table.real("low", {-kWidestBand, 0});
  c.high = table.real("high", {0, kWidestBand});
  c.slope = table.real_or("slope", {0, 2}, 1);
  if (table.has("slope") && c.of.what != "gain") {
    table.fail("slope", "only a gain has one", "no slope");
  }
  c.rows = table.whole("rows", {1, kMostBandRows});
  c.models = table.whole("models", {1, c.rows});
  c.least = table.real_or("least", {0, kMostAmount}, 0);
  c.most = table.real_or("most", {c.least, kMostAmount}, c.least);
  return c;
}

Spread read_spread(const TomlTable& table) {
  table.refuse_other_keys({"what", "phase", "trait", "slope", "centre", "least", "most"});
  Spread s;
  s.what = table.word("what", {"time", "gain"});
  s.phase = table.word("phase", kPhases);
  s.trait = table.word("trait", trait_names(s.what));
  s.slope = table.real("slope", {-kSteepest, kSteepest});
  s.centre = table.real("centre", {-kLargestTrait, kLargestTrait});
  s.least = table.real("least", {-kLargestTrait, s.centre});
  s.most = table.real("most", {s.centre, kLargestTrait});
  return s;
}

Widening read_widening(const TomlTable& table) {
  table.refuse_other_keys(
      {"what", "phase", "checked", "uncalibrated", "beyond", "unseen", "machines"});
  Widening w;
  w.what = table.word("what", band_subjects());
  w.phase = word_or_any(table, "phase", kPhases);
  w.checked = table.real("checked", {1, kMostWidening});
  w.uncalibrated = table.real("uncalibrated", {w.checked, kMostWidening});
  w.beyond = table.real_or("beyond", {0, kLargestBeyond}, 0);
  w.unseen = table.real_or("unseen", {1, kMostWidening}, 1);
  if (table.has("machines")) w.machines = table.whole("machines", {0, kMostMachines});
  return w;
}

// Every estimate must find a class, so each subject has one for any work.
void check_complete(const TomlTable& file, const std::vector<BandClass>& classes) {
  for (const std::string& what : band_subjects()) {
    const WorkClass any{.what = what, .phase = {}, .maker = {}, .kernels = {}, .size = {}};
    const auto count =
        std::ranges::count_if(classes, [&](const BandClass& c) { return c.of == any; });
    if (count != 1) {
      file.fail("class", fmt::format("there are {} classes of {} for any work", count, what),
                "one with `what` and no phase, maker, kernels, size or apart");
    }
  }
}

std::string class_text(const BandClass& c) {
  std::string text = "\n[[class]]\n";
  const auto add = [&text](const char* key, const std::string& word) {
    if (!word.empty()) text += fmt::format("{} = {}\n", key, toml_text(word));
  };
  add("what", c.of.what);
  add("phase", c.of.phase);
  add("maker", c.of.maker);
  add("kernels", c.of.kernels);
  add("size", c.of.size);
  add("apart", c.of.apart);
  text += fmt::format("low = {:.4f}\nhigh = {:.4f}\n", c.low, c.high);
  if (c.of.what == "gain") text += fmt::format("slope = {:.3f}\n", c.slope);
  text += fmt::format("rows = {}\nmodels = {}\n", c.rows, c.models);
  // Rounded outwards, so that every row stays within.
  if (c.most > 0) {
    text += fmt::format("least = {:.4e}\nmost = {:.4e}\n", c.least * (1 - kRounding),
                        c.most * (1 + kRounding));
  }
  return text;
}

}  // namespace

BandTable BandTable::load(const std::string& path) {
  const TomlTable file = TomlTable::load(path);
  file.refuse_other_keys({"date", "coverage", "sources", "widening", "spread", "class"});
  static_cast<void>(file.real("coverage", {0.9, 0.9}));
  static_cast<void>(file.texts("sources"));
  if (!is_date(file.text("date"))) file.fail("date", "is not a date", "\"2024-03-18\"");
  std::vector<BandClass> classes;
  for (const TomlTable& table : file.tables("class")) {
    BandClass c = read_class(table);
    if (std::ranges::any_of(classes, [&](const BandClass& old) { return old.of == c.of; })) {
      table.fail("what", "this class stands here twice", "each class once");
    }
    classes.push_back(std::move(c));
  }
  check_complete(file, classes);
  std::vector<Widening> widenings;
  for (const TomlTable& table : file.tables("widening")) {
    const Widening w = read_widening(table);
    if (std::ranges::any_of(widenings, [&](const Widening& old) {
          return old.what == w.what && old.phase == w.phase;
        })) {
      table.fail("what", "has a widening already", "each subject and phase once");
    }
    widenings.push_back(w);
  }
  std::vector<Spread> spreads;
  const std::vector<TomlTable> of_spreads =
      file.has("spread") ? file.tables("spread") : std::vector<TomlTable>();
  for (const TomlTable& table : of_spreads) {
    Spread s = read_spread(table);
    if (std::ranges::any_of(spreads, [&](const Spread& old) {
          return old.what == s.what && old.phase == s.phase && old.trait == s.trait;
        })) {
      table.fail("trait", "has a spread already", "each trait of a subject and phase once");
    }
    spreads.push_back(std::move(s));
  }
  return {std::move(classes), std::move(widenings), std::move(spreads)};
}

std::string bands_toml(const BandTable& table, const BandSources& sources) {
  std::string text;
  for (const std::string& note : sources.notes) text += "# " + note + "\n";
  text += fmt::format("\ndate = {}\ncoverage = 0.9\nsources = {}\n", toml_text(sources.date),
                      toml_list(sources.measurements));
  for (const Widening& w : table.widenings()) {
    text += fmt::format("\n[[widening]]\nwhat = {}\n", toml_text(w.what));
    if (!w.phase.empty()) text += fmt::format("phase = {}\n", toml_text(w.phase));
    text += fmt::format("checked = {:.2f}\nuncalibrated = {:.2f}\n", w.checked, w.uncalibrated);
    text += fmt::format("beyond = {:.2f}\nunseen = {:.2f}\n", w.beyond, w.unseen);
    if (w.machines > 0) text += fmt::format("machines = {}\n", w.machines);
  }
  for (const Spread& s : table.spreads()) {
    text += fmt::format("\n[[spread]]\nwhat = {}\nphase = {}\ntrait = {}\n", toml_text(s.what),
                        toml_text(s.phase), toml_text(s.trait));
    text += fmt::format("slope = {:.4f}\ncentre = {:.4f}\nleast = {:.4f}\nmost = {:.4f}\n", s.slope,
                        s.centre, s.least, s.most);
  }
  for (const BandClass& c : table.classes()) text += class_text(c);
  return text;
}

}  // namespace fuseline
