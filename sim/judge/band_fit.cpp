#include "sim/judge/band_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr double kCoverage = 0.9;
constexpr std::size_t kRowsForQuantiles = 20;  // 5 % of them are one row
constexpr std::size_t kModelsForQuantiles = 3;
constexpr std::size_t kRowsForSpread = 5, kModelsForSpread = 2;
constexpr std::size_t kRowsWithoutParent = 10;  // Student's interval stands alone
constexpr double kLeastHalfWidth = 0.01;        // clocks differ by as much from run to run
// Factors below 1 that hold enough rows of one half of the models hold too few of the other half.
constexpr double kNarrowest = 1, kFactorStep = 0.05;
constexpr double kWidestClass = 3;  // a factor of 20
// Beyond it more width for all buys little: what lies outside are kinds of work that no other model
// of the class has.
constexpr double kMostFactor = 1.4;
constexpr double kWidestChecked = 2, kWidestStanding = 5;
constexpr double kNeverOverChecked = 2;
// How much wider beyond the sizes of all rows: chosen on every other model (in alphabetical order)
// as the least that holds 85 % of its rows, or has the least interval score; checked on the rest.
// `unseen`, for kernels of which no row is, was chosen while looking at all models.
constexpr struct {
  const char* what;
  double beyond, unseen;
} kStretches[] = {{"time", 0.5, 1.5},
                  {"hbm", 2, 1.5},
                  {"kernel_time", 0.5, 1},
                  {"kernel_hbm", 1, 1},
                  {"gain", 0, 1.5}};
constexpr double kZ = 1.6449;  // the 95th percentile of the normal distribution

using Rows = std::vector<const Residual*>;

// Of the what, phase, maker, kernels and size, the first `words` + 1.
WorkClass shortened(WorkClass work, int words) {
  if (words < 1) work.phase.clear();
  if (words < 2) work.maker.clear();
  if (words < 3) work.kernels.clear();
  if (words < 4) work.size.clear();
  return work;
}
constexpr int kMostWords = 4;

std::string key_of(const WorkClass& w) {
  return w.what + '/' + w.phase + '/' + w.maker + '/' + w.kernels + '/' + w.size;
}

double slope_of(const Rows& rows) {
  double products = 0, squares = 0;
  for (const Residual* r : rows) {
    products += std::log(r->predicted) * std::log(r->measured);
    squares += std::log(r->predicted) * std::log(r->predicted);
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 2.0) : 1.0;
}

// The 95th percentile of Student's distribution, by its expansion around the normal one.
double student(double freedom) {
  const double z2 = kZ * kZ;
  return kZ *
         (1 + (z2 + 1) / (4 * freedom) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * freedom * freedom));
}

// Rows of one model err alike, so that a band of few models is as wide as Student's for so many
// independent rows.
double of_few_models(double models) {
  constexpr double kMost = 2;
  return std::min(kMost, student(models - 1) / kZ * std::sqrt(1 + 1 / models));
}

bool has_quantiles(const BandClass& c) {
  return c.rows >= static_cast<std::int64_t>(kRowsForQuantiles) &&
         c.models >= static_cast<std::int64_t>(kModelsForQuantiles);
}

// How much wider a class of order statistics was made for its few models.
double widened_for_models(const BandClass& c) {
  return has_quantiles(c) ? of_few_models(static_cast<double>(c.models)) : 1;
}

// Widenings of nothing but size and kind.
std::vector<Widening> stretches() {
  std::vector<Widening> all;
  for (const auto& s : kStretches) {
    all.push_back({.what = s.what, .phase = {}, .beyond = s.beyond, .unseen = s.unseen});
  }
  return all;
}

Widening stretch_of(const std::string& what) {
  for (Widening& w : stretches()) {
    if (w.what == what) return w;
  }
  return {.what = what, .phase = {}};
}

// Between the order statistics around `rank` of n, counted from 1.
double order_statistic(const std::vector<double>& sorted, double rank) {
  const double at = std::clamp(rank, 1.0, static_cast<double>(sorted.size())) - 1;
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

// The class of the rows; empty where they are too few to say more than their parent does.
std::optional<BandClass> class_of(const WorkClass& of, const Rows& rows, const BandClass* parent) {
  std::set<std::string> models;
  for (const Residual* r : rows) models.insert(r->model);
  BandClass c{.of = of,
              .slope = of.what == "gain" ? slope_of(rows) : 1,
              .rows = static_cast<std::int64_t>(rows.size()),
              .models = static_cast<std::int64_t>(models.size())};
  const bool many = has_quantiles(c);
  if (!many && parent != nullptr) c.slope = parent->slope;
  std::vector<double> residuals;
  for (const Residual* r : rows) {
    residuals.push_back(std::log(r->measured) - c.slope * std::log(r->predicted));
  }
  std::sort(residuals.begin(), residuals.end());
  const auto n = static_cast<double>(rows.size());
  if (many || parent == nullptr) {
    c.low = order_statistic(residuals, (n + 1) * (1 - kCoverage) / 2);
    c.high = order_statistic(residuals, (n + 1) * (1 + kCoverage) / 2);
    c.low *= widened_for_models(c);
    c.high *= widened_for_models(c);
  } else if (rows.size() < kRowsForSpread || models.size() < kModelsForSpread) {
    return std::nullopt;
  } else {
    double mean = 0, squares = 0;
    for (const double r : residuals) mean += r / n;
    for (const double r : residuals) squares += (r - mean) * (r - mean);
    const double reach = student(n - 1) * std::sqrt(squares / (n - 1) * (1 + 1 / n));
    const bool alone = rows.size() >= kRowsWithoutParent;
    // Student's interval knows of few models already: the parent's rows count, not its own.
    const double plain = widened_for_models(*parent);
    c.low = std::min(alone ? 0.0 : parent->low / plain, mean - reach);
    c.high = std::max(alone ? 0.0 : parent->high / plain, mean + reach);
  }
  if (of.what != "gain") {
    const auto [least, most] = std::ranges::minmax_element(rows, {}, &Residual::predicted);
    c.least = (*least)->predicted;
    c.most = (*most)->predicted;
  }
  c.low = std::clamp(c.low, -kWidestClass, -kLeastHalfWidth);
  c.high = std::clamp(c.high, kLeastHalfWidth, kWidestClass);
  return c;
}

// Of GPUs on which constants were fitted, without one model; nothing widened.
std::vector<BandClass> classes_of(const Rows& rows) {
  std::vector<BandClass> classes;
  std::map<std::string, std::size_t> made;
  for (int words = 0; words <= kMostWords; ++words) {
    std::map<std::string, Rows> groups;
    for (const Residual* r : rows) groups[key_of(shortened(r->work, words))].push_back(r);
    for (const auto& [key, group] : groups) {
      const BandClass* parent = nullptr;
      for (int w = words - 1; w >= 0 && parent == nullptr; --w) {
        const auto found = made.find(key_of(shortened(group.front()->work, w)));
        if (found != made.end()) parent = &classes[found->second];
      }
      auto c = class_of(shortened(group.front()->work, words), group, parent);
      if (!c) continue;
      made.emplace(key, classes.size());
      classes.push_back(std::move(*c));
    }
  }
  return classes;
}

Rows chosen(const std::vector<Residual>& rows, bool fitted, const std::string& without = {}) {
  Rows out;
  for (const Residual& r : rows) {
    if ((r.standing == Standing::fitted) == fitted && (without.empty() || r.model != without)) {
      out.push_back(&r);
    }
  }
  return out;
}

bool holds(const Band& band, const Residual& row) {
  const double factor = row.measured / row.predicted;
  return band.low <= factor && factor <= band.high;
}

// Every class of that subject and phase, so many times wider.
std::vector<BandClass> scaled(std::vector<BandClass> classes, const std::string& what,
                              const std::string& phase, double factor) {
  for (BandClass& c : classes) {
    if (c.of.what != what || c.of.phase != phase) continue;
    c.low = std::max(-kWidestClass, c.low * factor);
    c.high = std::min(kWidestClass, c.high * factor);
  }
  return classes;
}

// Bands fitted without each model.
using WithoutModel = std::map<std::string, std::vector<BandClass>>;

WithoutModel without_each(const std::vector<Residual>& rows) {
  WithoutModel tables;
  for (const Residual& r : rows) {
    if (!tables.contains(r.model)) {
      tables.emplace(r.model, classes_of(chosen(rows, true, r.model)));
    }
  }
  return tables;
}

bool has_subject(const std::vector<BandClass>& classes, const std::string& what) {
  return std::ranges::any_of(classes, [&](const BandClass& c) { return c.of.what == what; });
}

// The least factor in steps with which bands of rows of left-out models hold enough of them.
double least_factor(const std::string& what, const std::string& phase, const Rows& rows,
                    const WithoutModel& tables) {
  for (double factor = kNarrowest; factor < kMostFactor; factor += kFactorStep) {
    std::map<std::string, BandTable> scaled_tables;
    std::size_t held = 0, count = 0;
    for (const Residual* r : rows) {
      const auto& classes = tables.at(r->model);
      if (!has_subject(classes, what)) continue;
      auto found = scaled_tables.find(r->model);
      if (found == scaled_tables.end()) {
        found = scaled_tables
                    .emplace(r->model, BandTable(scaled(classes, what, phase, factor), stretches()))
                    .first;
      }
      ++count;
      held += static_cast<std::size_t>(holds(band_of(found->second, *r), *r));
    }
    if (static_cast<double>(held) >= kCoverage * static_cast<double>(count)) return factor;
  }
  return kMostFactor;
}

// The least widening for rows of that standing, whose GPUs no class knows.
double least_widening(const Rows& rows, const WithoutModel& tables) {
  const double widest =
      rows.front()->standing == Standing::checked ? kWidestChecked : kWidestStanding;
  for (double wide = 1; wide < widest; wide += kFactorStep) {
    std::map<std::string, BandTable> of_model;
    std::size_t held = 0, count = 0;
    for (const Residual* r : rows) {
      const auto& classes = tables.at(r->model);
      if (!has_subject(classes, r->work.what)) continue;
      std::vector<Widening> by = stretches();
      for (Widening& w : by) w.checked = w.uncalibrated = wide;
      const auto& table = of_model.try_emplace(r->model, classes, std::move(by)).first->second;
      ++count;
      held += static_cast<std::size_t>(holds(band_of(table, *r), *r));
    }
    if (static_cast<double>(held) >= kCoverage * static_cast<double>(count)) return wide;
  }
  return widest;
}

// Where a standing has too few rows of a phase, the widest of the subject's phases counts. Where
// nothing was published of a subject, a GPU that was never measured needs twice what one needs that
// was checked: no row says so, but its files hold no number of ours either.
class Widenings {
 public:
  Widenings(const std::vector<Residual>& rows, const WithoutModel& tables) : tables_(tables) {
    for (const Residual& r : rows) of_[{r.standing, r.work.what}][r.work.phase].push_back(&r);
  }

  [[nodiscard]] std::vector<Widening> all(const std::vector<BandClass>& classes) const {
    std::vector<Widening> out;
    for (const std::string& what : band_subjects()) {
      if (!has_subject(classes, what)) continue;
      const auto checked = of(Standing::checked, what), never = of(Standing::uncalibrated, what);
      for (const char* phase : {"", "forward", "decode", "train"}) {
        const double c = pick(checked, phase);
        const double n = of_.contains({Standing::uncalibrated, what}) ? pick(never, phase)
                                                                      : kNeverOverChecked * c;
        Widening w = stretch_of(what);
        w.phase = phase;
        w.checked = c;
        w.uncalibrated = std::max(c, n);
        out.push_back(std::move(w));
      }
    }
    return out;
  }

 private:
  using ByPhase = std::map<std::string, double>;  // "" is the widest

  [[nodiscard]] ByPhase of(Standing standing, const std::string& what) const {
    const auto found = of_.find({standing, what});
    ByPhase out{{"", 1.0}};
    if (found == of_.end()) return out;
    for (const auto& [phase, rows] : found->second) {
      const double wide = least_widening(rows, tables_);
      if (rows.size() >= kRowsForSpread) out[phase] = wide;
      out[""] = std::max(out[""], wide);
    }
    return out;
  }
  static double pick(const ByPhase& of, const std::string& phase) {
    const auto found = of.find(phase);
    return found == of.end() ? of.at("") : found->second;
  }

  const WithoutModel& tables_;
  std::map<std::pair<Standing, std::string>, std::map<std::string, Rows>> of_;
};

}  // namespace

Band band_of(const BandTable& table, const Residual& row) {
  return row.work.what == "gain" ? table.of_gain(row.work, row.standing, row.predicted)
                                 : table.of(row.work, row.standing, row.predicted);
}

BandTable fit_bands(const std::vector<Residual>& rows) {
  std::vector<BandClass> classes = classes_of(chosen(rows, true));
  WithoutModel tables = without_each(rows);
  std::map<std::pair<std::string, std::string>, Rows> of_phase;
  for (const Residual* r : chosen(rows, true)) of_phase[{r->work.what, r->work.phase}].push_back(r);
  for (const auto& [key, group] : of_phase) {
    const double factor = least_factor(key.first, key.second, group, tables);
    classes = scaled(std::move(classes), key.first, key.second, factor);
    for (auto& [model, table] : tables) {
      table = scaled(std::move(table), key.first, key.second, factor);
    }
  }
  std::vector<Widening> widenings = Widenings(rows, tables).all(classes);
  return {std::move(classes), std::move(widenings)};
}

void require_rows_for_bands(const std::vector<Residual>& rows) {
  const WithoutModel tables = without_each(rows);
  for (const Residual& r : rows) {
    if (has_subject(tables.at(r.model), r.work.what)) continue;
    throw InputError({.field = r.work.what,
                      .value = r.model,
                      .message = "has no rows of other models to fit bands to",
                      .allowed = "rows of several models, of a GPU whose constants were fitted"});
  }
}

std::vector<Coverage> coverage_of(const std::vector<Residual>& rows, const BandOf& band) {
  std::vector<Coverage> out;
  std::map<std::string, std::vector<double>> widths;
  for (const Residual& r : rows) {
    const std::string what = r.work.what + " " + r.work.phase;
    auto at = std::ranges::find_if(out, [&](const Coverage& c) { return c.what == what; });
    if (at == out.end()) at = out.insert(out.end(), Coverage{.what = what});
    const Band b = band(r);
    const double truth = r.measured / r.predicted;
    ++at->rows;
    at->held += static_cast<std::size_t>(holds(b, r));
    at->mean_error += std::abs(r.predicted / r.measured - 1);
    const double outside = std::max({0.0, b.low - truth, truth - b.high});
    at->score += b.high - b.low + 2 / (1 - kCoverage) * outside;
    widths[what].push_back((b.high - b.low) / 2);
  }
  for (Coverage& c : out) {
    std::vector<double>& w = widths[c.what];
    std::sort(w.begin(), w.end());
    c.half_width = order_statistic(w, (static_cast<double>(w.size()) + 1) / 2);
    c.mean_error /= static_cast<double>(c.rows);
    c.score /= static_cast<double>(c.rows);
  }
  return out;
}

std::vector<Coverage> left_out_coverage(const std::vector<Residual>& rows) {
  std::map<std::string, BandTable> without;
  for (const Residual& r : rows) {
    if (without.contains(r.model)) continue;
    std::vector<Residual> others;
    std::ranges::copy_if(rows, std::back_inserter(others),
                         [&](const Residual& o) { return o.model != r.model; });
    without.emplace(r.model, fit_bands(others));
  }
  return coverage_of(rows, [&](const Residual& r) { return band_of(without.at(r.model), r); });
}

}  // namespace fuseline
