#include "sim/judge/band_classes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/judge/spread_fit.h"

namespace fuseline {

namespace {

constexpr double kHeld = 0.9;
// From so many rows on an interval has ends of its own: three rows lie beyond each. Of fewer it is
// as wide to both sides.
constexpr std::size_t kRowsForEnds = 60;
constexpr std::int64_t kRowsOfPhase = 10;  // with fewer the subject's rows count
constexpr double kRowsOfParent = 10;       // that the class with a word less stands for
// The same where traits say how large errors are: as many as a phase has. Then words say little
// more, and with 10 to 40 rows the interval score of models left out was worse.
constexpr double kRowsBesideTraits = 300;
constexpr std::int64_t kRowsOfClass = 5, kModelsOfClass = 2;  // with fewer there is none
constexpr std::int64_t kRowsApart = 3;                        // of a kind that is judged apart
constexpr double kLeastHalfWidth = 0.01;  // clocks differ by as much from run to run
constexpr double kLeastError = 0.004;     // mean error of a class
constexpr double kWidestClass = 3;        // a factor of 20
constexpr double kZ = 1.6449;             // the 95th percentile of the normal distribution

// Of the what, phase, maker, kernels and size, the first `words` + 1.
WorkClass shortened(WorkClass work, int words) {
  if (words < 1) work.phase.clear();
  if (words < 2) work.maker.clear();
  if (words < 3) work.kernels.clear();
  if (words < 4) work.size.clear();
  work.traits.clear();
  return work;
}
constexpr int kMostWords = 4;

struct ByWords {
  bool operator()(const WorkClass& a, const WorkClass& b) const {
    return std::tie(a.what, a.phase, a.maker, a.kernels, a.size) <
           std::tie(b.what, b.phase, b.maker, b.kernels, b.size);
  }
};
template <class T>
using ByClass = std::map<WorkClass, T, ByWords>;

double gain_slope(const ResidualRows& rows) {
  double products = 0, squares = 0;
  for (const Residual* r : rows) {
    products += std::log(r->predicted) * std::log(r->measured);
    squares += std::log(r->predicted) * std::log(r->predicted);
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 2.0) : 1.0;
}

// How much wider an interval of so many independent rows has to be than one of very many.
double of_few(double rows) {
  constexpr double kMost = 2, kLeastRows = 2;
  rows = std::max(kLeastRows, rows);
  return std::min(kMost, student(rows - 1) / kZ * std::sqrt(1 + 1 / rows));
}

// How a phase's errors are compared: beyond `slope` times the prediction's logarithm, over what
// traits say of their size.
struct Scale {
  double slope = 1;
  std::vector<Spread> spreads;
  [[nodiscard]] double error(const Residual& row) const {
    const double beyond = std::log(row.measured) - slope * std::log(row.predicted);
    return beyond / spread_factor(spreads, row.work);
  }
};

// The sum of what rows say, and how many there are, in all and of each model.
struct ErrorSum {
  double errors = 0, rows = 0;
};
struct SumsOfModels {
  ErrorSum all;
  std::map<std::string, ErrorSum> models;
  void add(const std::string& model, double error) {
    for (ErrorSum* sum : {&all, &models[model]}) sum->errors += error, sum->rows += 1;
  }
  void add(const SumsOfModels& other) {
    all.errors += other.all.errors, all.rows += other.all.rows;
    for (const auto& [model, sum] : other.models)
      models[model].errors += sum.errors, models[model].rows += sum.rows;
  }
  // `model` empty: nothing is left out.
  [[nodiscard]] ErrorSum without(const std::string& model) const {
    const auto found = models.find(model);
    if (found == models.end()) return all;
    return {all.errors - found->second.errors, all.rows - found->second.rows};
  }
};

// Of the rows of one subject and phase, or of one subject: how large errors are by class. The mean
// error of a class counts as much as its rows, beside kRowsOfParent rows, or kRowsBesideTraits,
// with the error of the class with a word less.
class ClassErrors {
 public:
  ClassErrors(const ResidualRows& rows, int first, const Scale& scale)
      : first_(first), rows_of_parent_(scale.spreads.empty() ? kRowsOfParent : kRowsBesideTraits) {
    ByClass<SumsOfModels> whole;
    for (const Residual* r : rows) whole[r->work].add(r->model, std::abs(scale.error(*r)));
    for (const auto& [work, sums] : whole)
      for (int words = first; words <= kMostWords; ++words)
        classes_[shortened(work, words)].add(sums);
  }
  [[nodiscard]] double mean(const WorkClass& work, int words, const std::string& without) const {
    double mean = 0, parent = 0;
    for (int w = first_; w <= words; ++w) {
      const auto found = classes_.find(shortened(work, w));
      if (found == classes_.end()) break;
      const ErrorSum sum = found->second.without(without);
      if (sum.rows + parent > 0) mean = (sum.errors + parent * mean) / (sum.rows + parent);
      parent = rows_of_parent_;
    }
    return std::max(kLeastError, mean);
  }

 private:
  int first_;
  double rows_of_parent_;
  ByClass<SumsOfModels> classes_;
};

struct ScaledError {
  std::string model;
  double error;  // over its class's mean error in other models
};

// How alike rows of one model are: the share of their variance that lies between models.
double between_models(const std::vector<ScaledError>& rows) {
  std::map<std::string, ErrorSum> models;
  double mean = 0;
  const auto n = static_cast<double>(rows.size());
  for (const ScaledError& r : rows) {
    models[r.model].errors += r.error;
    models[r.model].rows += 1;
    mean += r.error / n;
  }
  const auto k = static_cast<double>(models.size());
  if (k < 2 || n <= k) return 1;
  double between = 0, within = 0, squares = 0;
  for (const auto& [model, sum] : models) {
    const double own = sum.errors / sum.rows;
    between += sum.rows * (own - mean) * (own - mean) / (k - 1);
    squares += sum.rows * sum.rows;
  }
  for (const ScaledError& r : rows) {
    const ErrorSum& sum = models.at(r.model);
    const double off = r.error - sum.errors / sum.rows;
    within += off * off / (n - k);
  }
  const double usual = (n - squares / n) / (k - 1);  // rows of a model
  const double all = between + (usual - 1) * within;
  return all > 0 ? std::clamp((between - within) / all, 0.0, 1.0) : 0;
}

// Rows of one model that err alike count as fewer.
double independent_rows(const std::vector<ScaledError>& rows) {
  std::map<std::string, double> models;
  for (const ScaledError& r : rows) models[r.model] += 1;
  const double alike = between_models(rows);
  double count = 0;
  for (const auto& [model, n] : models) count += n / (1 + (n - 1) * alike);
  return count;
}

struct ErrorEnds {
  double low, high;
};

// The interval that holds the rows' errors over the mean errors of their classes, each class as it
// is known from other models.
ErrorEnds ends_of(const ResidualRows& rows, const ClassErrors& errors, const Scale& scale) {
  std::vector<ScaledError> scaled;
  std::map<std::string, ByClass<double>> means;
  for (const Residual* r : rows) {
    double& mean = means[r->model][r->work];
    if (mean == 0) mean = errors.mean(r->work, kMostWords, r->model);
    scaled.push_back({r->model, scale.error(*r) / mean});
  }
  const double wide = of_few(independent_rows(scaled));
  std::vector<double> sorted;
  const bool both = rows.size() >= kRowsForEnds;
  for (const ScaledError& r : scaled) sorted.push_back(both ? r.error : std::abs(r.error));
  std::sort(sorted.begin(), sorted.end());
  const double places = static_cast<double>(rows.size()) + 1;
  if (!both) {
    const double end = wide * order_statistic(sorted, places * kHeld);
    return {-end, end};
  }
  return {wide * std::min(0.0, order_statistic(sorted, places * (1 - kHeld) / 2)),
          wide * std::max(0.0, order_statistic(sorted, places * (1 + kHeld) / 2))};
}

// Classes of one subject, or of one subject and phase, with `first` words and more.
void add_classes(const ResidualRows& rows, int first, int last, FittedClasses& fitted) {
  Scale scale{.slope = rows.front()->work.what == "gain" ? gain_slope(rows) : 1, .spreads = {}};
  if (first > 0) {
    std::vector<double> sizes;
    for (const Residual* r : rows) sizes.push_back(std::abs(scale.error(*r)));
    scale.spreads = fit_spreads(rows, sizes);
    std::ranges::copy(scale.spreads, std::back_inserter(fitted.spreads));
  }
  const ClassErrors errors(rows, first, scale);
  const ErrorEnds ends = ends_of(rows, errors, scale);
  for (int words = first; words <= last; ++words) {
    ByClass<ResidualRows> groups;
    for (const Residual* r : rows) groups[shortened(r->work, words)].push_back(r);
    for (const auto& [of, group] : groups) {
      std::set<std::string> models;
      for (const Residual* r : group) models.insert(r->model);
      BandClass c{
          .of = of, .slope = scale.slope, .rows = std::ssize(group), .models = std::ssize(models)};
      if (words > 0 && (c.rows < kRowsOfClass || c.models < kModelsOfClass)) continue;
      const double mean = errors.mean(c.of, words, {});
      c.low = std::clamp(mean * ends.low, -kWidestClass, -kLeastHalfWidth);
      c.high = std::clamp(mean * ends.high, kLeastHalfWidth, kWidestClass);
      if (c.of.what != "gain") {
        const auto [least, most] = std::ranges::minmax_element(group, {}, &Residual::predicted);
        c.least = (*least)->predicted;
        c.most = (*most)->predicted;
      }
      fitted.classes.push_back(std::move(c));
    }
  }
}

// One class of a kind that is judged apart: its rows say nothing of others, and others nothing of
// it. They are few: the band is as wide as Student's, to both sides alike, and a gain has no slope.
void add_class_apart(const ResidualRows& rows, std::vector<BandClass>& classes) {
  std::set<std::string> models;
  std::vector<ScaledError> errors;  // of one class: over nothing
  std::vector<double> sizes;
  for (const Residual* r : rows) {
    models.insert(r->model);
    errors.push_back({r->model, Scale{}.error(*r)});
    sizes.push_back(std::abs(errors.back().error));
  }
  if (std::ssize(rows) < kRowsApart || std::ssize(models) < kModelsOfClass) return;
  std::sort(sizes.begin(), sizes.end());
  const double places = static_cast<double>(rows.size()) + 1;
  const double end =
      std::clamp(of_few(independent_rows(errors)) * order_statistic(sizes, places * kHeld),
                 kLeastHalfWidth, kWidestClass);
  BandClass c;
  c.of.what = rows.front()->work.what;
  c.of.apart = rows.front()->work.apart;
  c.low = -end;
  c.high = end;
  c.rows = std::ssize(rows);
  c.models = std::ssize(models);
  if (c.of.what != "gain") {
    const auto [least, most] = std::ranges::minmax_element(rows, {}, &Residual::predicted);
    c.least = (*least)->predicted;
    c.most = (*most)->predicted;
  }
  classes.push_back(std::move(c));
}

}  // namespace

double student(double freedom) {
  const double z2 = kZ * kZ;
  return kZ *
         (1 + (z2 + 1) / (4 * freedom) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * freedom * freedom));
}

double order_statistic(const std::vector<double>& sorted, double rank) {
  const double at = std::clamp(rank, 1.0, static_cast<double>(sorted.size())) - 1;
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

FittedClasses classes_of(const ResidualRows& rows) {
  FittedClasses fitted;
  std::map<std::string, ResidualRows> subjects;
  ByClass<ResidualRows> phases;
  std::map<std::pair<std::string, std::string>, ResidualRows> apart;
  for (const Residual* r : rows) {
    if (!r->work.apart.empty()) {
      apart[{r->work.what, r->work.apart}].push_back(r);
      continue;
    }
    subjects[r->work.what].push_back(r);
    phases[shortened(r->work, 1)].push_back(r);
  }
  for (const auto& [what, group] : subjects) add_classes(group, 0, 0, fitted);
  for (const auto& [key, group] : phases)
    if (std::ssize(group) >= kRowsOfPhase) add_classes(group, 1, kMostWords, fitted);
  for (const auto& [key, group] : apart) add_class_apart(group, fitted.classes);
  return fitted;
}

}  // namespace fuseline
