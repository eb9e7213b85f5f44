#include "sim/judge/audit/verdict.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/judge/audit/conditions.h"

namespace fuseline::audit {

namespace {

bool supports(const Outcome& o) { return o.reached || o.bolder; }

// Bolder figures are higher ones, but of memory and of cost.
bool lower_is_bolder(Kind kind) { return kind == Kind::fits_in_memory || kind == Kind::cost; }

const Tried& boldest(const Claim& claim, const std::vector<Tried>& tried) {
  return *std::max_element(tried.begin(), tried.end(), [&](const Tried& a, const Tried& b) {
    return lower_is_bolder(claim.kind) ? a.outcome.predicted > b.outcome.predicted
                                       : a.outcome.predicted < b.outcome.predicted;
  });
}

std::string range_of(const Claim& claim, const std::vector<Tried>& tried) {
  const auto [least, most] = std::minmax_element(
      tried.begin(), tried.end(),
      [](const Tried& a, const Tried& b) { return a.outcome.predicted < b.outcome.predicted; });
  const std::string low = amount_text(claim, least->outcome.predicted);
  const std::string high = amount_text(claim, most->outcome.predicted);
  return low == high ? low : low + " to " + high;
}

std::size_t count_if(const std::vector<Tried>& tried, bool (*test)(const Outcome&)) {
  return static_cast<std::size_t>(std::count_if(
      tried.begin(), tried.end(), [test](const Tried& t) { return test(t.outcome); }));
}

Verdict contradiction(const Claim& claim, const std::vector<Tried>& tried) {
  // The setting whose limit comes nearest speaks for all; obstacles differ in their numbers only.
  const auto nearest =
      std::max_element(tried.begin(), tried.end(), [&](const Tried& a, const Tried& b) {
        return lower_is_bolder(claim.kind) ? a.outcome.limit > b.outcome.limit
                                           : a.outcome.limit < b.outcome.limit;
      });
  return {Judgement::contradicts,
          {},
          fmt::format("in none of {} setting{} do the limits allow it; nearest ({}): {}",
                      tried.size(), tried.size() == 1 ? "" : "s", describe(claim, nearest->setting),
                      nearest->outcome.obstacle)};
}

// The choice that matters most: where the claim holds most and least often.
std::string most_telling(const std::vector<Point>& points) {
  std::string text;
  double widest = 0;
  for (std::size_t d = 0; d < points.front().dimensions.size(); ++d) {
    const std::vector<ShareHolding> shares = shares_holding(points, d);
    const auto [least, most] = std::minmax_element(
        shares.begin(), shares.end(),
        [](const ShareHolding& a, const ShareHolding& b) { return a.share() < b.share(); });
    if (most->share() - least->share() <= widest) continue;
    widest = most->share() - least->share();
    text = fmt::format(", most often with {} {} ({} of {}), least often with {} ({} of {})",
                       points.front().dimensions[d].name, most->value, most->holding, most->points,
                       least->value, least->holding, least->points);
  }
  return text;
}

// A token of a prompt and a generated one are different things to claim.
std::string by_phase(const std::vector<Point>& points) {
  for (std::size_t d = 0; d < points.front().dimensions.size(); ++d) {
    if (points.front().dimensions[d].name != "phase") continue;
    const std::vector<ShareHolding> shares = shares_holding(points, d);
    if (shares.size() < 2) return {};
    std::string text;
    for (const ShareHolding& s : shares) {
      text += fmt::format("{} {} {} of {}", text.empty() ? "; by phase:" : ",", s.value, s.holding,
                          s.points);
    }
    return text;
  }
  return {};
}

// Settings in which measurements decide, where there are any.
std::string by_measurement(const std::vector<Tried>& tried) {
  std::vector<double> ratios;
  std::size_t settings = 0;
  for (const Tried& t : tried) {
    ratios.insert(ratios.end(), t.outcome.measured.begin(), t.outcome.measured.end());
    settings += t.outcome.measured.empty() ? 0 : 1;
  }
  if (ratios.empty()) return {};
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return fmt::format("; in {} of them what was measured decides, a speed-up of {:.2f}{}", settings,
                     *least, ratios.size() > 1 ? fmt::format(" to {:.2f}x", *most) : "x");
}

Verdict in_some(const Claim& claim, const std::vector<Tried>& tried) {
  std::vector<Point> points;
  for (const Tried& t : tried) {
    points.push_back({dimensions(claim, t.setting), supports(t.outcome)});
  }
  const Conditions found = conditions_of(points);
  Verdict v{Judgement::only_if, found.necessary, {}};
  const std::size_t reached = count_if(tried, supports);
  v.reason =
      fmt::format("{} of {} settings reach it{}", reached, tried.size(), by_measurement(tried));
  if (!found.necessary.empty()) {
    v.reason += found.holding == found.meeting
                    ? ", all that meet these conditions"
                    : fmt::format(", {} of the {} that meet these conditions", found.holding,
                                  found.meeting);
  }
  if (found.necessary.empty()) {
    const std::string either = alternatives(points);
    v.conditions.push_back(
        either.empty() ? "the settings that its source does not state are favourable" : either);
    v.reason += most_telling(points) + by_phase(points);
  }
  return v;
}

// How much nearer to the limits an implementation would have to come, where it has least to do.
Verdict beyond_predictions(const Claim& claim, const std::vector<Tried>& tried) {
  Verdict v{Judgement::only_if, {}, {}};
  const Tried& best = boldest(claim, tried);
  v.reason =
      fmt::format("no setting of {} reaches it, {} is the nearest ({})", tried.size(),
                  amount_text(claim, best.outcome.predicted), describe(claim, best.setting)) +
      by_measurement(tried);
  if (claim.kind == Kind::speed_up || claim.kind == Kind::latency_reduction) {
    double least_needed = 1e300, there = 0;
    bool measured = false;
    for (const Tried& t : tried) {
      if (!t.outcome.possible) continue;
      const SlowestBaseline& baseline = t.outcome.baseline;
      const Seconds before = baseline.measured ? baseline.time : t.outcome.before;
      const double needed =
          t.outcome.least.value() * supporting_speed_ups(claim).least / before.value();
      if (needed < least_needed) {
        least_needed = needed;
        there = t.outcome.least / t.outcome.after;
        measured = baseline.measured;
      }
    }
    v.conditions.push_back(
        fmt::format("kernels run at {:.0f} % of the limits, where {:.0f} % is predicted{}",
                    100 * least_needed, 100 * there,
                    measured ? ", beside the measured baseline"
                             : ", or the baseline is slower than predicted"));
  } else if (claim.kind == Kind::latency) {
    v.conditions.push_back("the GPU or its software is none of those tried");
  } else {
    v.conditions.push_back("an implementation better than any predicted here");
  }
  return v;
}

bool is_possible(const Outcome& o) { return o.possible; }

// The source's own case that is outside the figure; null when there is none.
const OwnRow* outside(const Figure& f) {
  if (!f.everywhere) return nullptr;
  for (const OwnRow& row : f.rows) {
    if (row.value < f.ratio.least - f.reading_error) return &row;
    if (!f.at_least && row.value > f.ratio.most + f.reading_error) return &row;
  }
  return nullptr;
}

// With the digits that tell it from the figure: "35.8 %".
std::string exact_text(const Claim& claim, const OwnRow& row) {
  const bool share = amount_text(claim, 0).ends_with("%");
  return share ? fmt::format("{:.1f} %", 100 * row.value) : amount_text(claim, row.value);
}

// Of a figure that is said to hold everywhere; the settings whose limits do not allow it.
Verdict contradiction_somewhere(const Claim& claim, const std::vector<Tried>& tried) {
  std::vector<Tried> impossible;
  for (const Tried& t : tried) {
    if (!t.outcome.possible) impossible.push_back(t);
  }
  Verdict v = contradiction(claim, impossible);
  v.reason =
      fmt::format("in {} of {} settings the limits do not allow it; one of them ({}): {}",
                  impossible.size(), tried.size(), describe(claim, impossible.front().setting),
                  impossible.front().outcome.obstacle);
  return v;
}

// Whether a model fits is decided by its weights, and coda's plans by what they are.
Verdict refuted_by_plans(const Claim& claim, const std::vector<Tried>& tried) {
  if (claim.kind == Kind::coverage) {
    return {Judgement::refuted,
            {},
            fmt::format("in none of {} settings do kernels with a GEMM compute that share: {}",
                        tried.size(), range_of(claim, tried))};
  }
  const std::size_t both = count_if(tried, [](const Outcome& o) { return o.before_too; });
  return {Judgement::refuted,
          {},
          fmt::format("fusion decides it in none of {} settings: in {} the model fits with and "
                      "without it, in {} it fits neither way",
                      tried.size(), both, tried.size() - both)};
}

bool plans_decide(const Claim& claim) {
  return claim.kind == Kind::coverage ||
         (claim.kind == Kind::fits_in_memory && !claim.choices.baselines.empty());
}

// What a claim's file may state of each dimension.
bool is_stated(const Claim& claim, const std::string& dimension) {
  static const std::vector<std::pair<const char*, const char*>> fields = {
      {"model", "model"},
      {"GPU", "gpu"},
      {"phase", "phase"},
      {"batch", "batch"},
      {"tokens", "seq"},
      {"tokens", "context"},
      {"dtype", "dtype"},
      {"weights", "weights"},
      {"baseline", "baseline"},
      {"policy", "policy"},
      {"level", "level"},
      {"bits per weight", "weight_bits"},
      {"price an hour", "price_per_hour"}};
  return std::any_of(fields.begin(), fields.end(), [&](const auto& f) {
    return dimension == f.first &&
           std::find(claim.stated.begin(), claim.stated.end(), f.second) != claim.stated.end();
  });
}

// A token of a phase costs what it does in no other.
std::string phase_text(const std::string& phase) {
  if (phase == name_of(Phase::decode)) return "phase decode (a generated token)";
  if (phase == name_of(Phase::forward)) return "phase forward (a whole forward pass)";
  return "phase train (a step of training)";
}

// Number formats are named however many were tried: those of fewer than 16 bits cannot be.
std::vector<std::string> open_choices(const Claim& claim, const std::vector<Tried>& tried) {
  std::vector<std::string> out;
  const std::vector<Dimension> first = dimensions(claim, tried.front().setting);
  for (std::size_t d = 0; d < first.size(); ++d) {
    if (is_stated(claim, first[d].name)) continue;
    std::vector<std::string> values;
    for (const Tried& t : tried) {
      const std::string value = dimensions(claim, t.setting)[d].value;
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    if (first[d].name == "dtype") {
      const bool has_bits = claim.kind == Kind::fits_in_memory;
      if (!has_bits) out.push_back(fmt::format("number format {}", fmt::join(values, " or ")));
    } else if (values.size() == 1) {
      out.push_back(first[d].name == "phase" ? phase_text(values.front())
                                             : first[d].name + " " + values.front());
    }
  }
  return out;
}

Verdict judged(const Claim& claim, const std::vector<Tried>& tried) {
  if (const OwnRow* row = outside(claim.figure)) {
    return {Judgement::refuted,
            {},
            fmt::format("the source's own case, {}, has {}", row->what, exact_text(claim, *row))};
  }
  const std::size_t supporting = count_if(tried, supports);
  const std::size_t possible = count_if(tried, is_possible);
  if (possible == 0) return contradiction(claim, tried);
  if (claim.figure.everywhere && possible < tried.size()) {
    return contradiction_somewhere(claim, tried);
  }
  if (supporting == tried.size()) {
    const bool more = count_if(tried, [](const Outcome& o) { return o.bolder; }) == tried.size();
    return {Judgement::plausible,
            {},
            fmt::format("{} predicted in {} setting{}{}", range_of(claim, tried), tried.size(),
                        tried.size() == 1 ? "" : "s", more ? ", all more than claimed" : "") +
                by_measurement(tried)};
  }
  if (supporting > 0) return in_some(claim, tried);
  return plans_decide(claim) ? refuted_by_plans(claim, tried) : beyond_predictions(claim, tried);
}

}  // namespace

Verdict judge(const Claim& claim, const std::vector<Tried>& tried) {
  if (claim.kind == Kind::other) return {Judgement::not_testable, {}, claim.why_not_testable};
  if (tried.empty()) {
    return {Judgement::not_testable, {}, "no combination of the choices can be predicted"};
  }
  Verdict verdict = judged(claim, tried);
  // A source that contradicts itself does so whatever it leaves open.
  if (outside(claim.figure) == nullptr) verdict.rests_on = open_choices(claim, tried);
  return verdict;
}

const char* name_of(Judgement judgement) {
  switch (judgement) {
    case Judgement::plausible:
      return "plausible";
    case Judgement::only_if:
      return "plausible only if";
    case Judgement::contradicts:
      return "contradicts the limits";
    case Judgement::refuted:
      return "refuted";
    case Judgement::not_testable:
      return "not testable";
  }
  return "?";
}

std::string amount_text(const Claim& claim, double amount) {
  switch (claim.kind) {
    case Kind::speed_up:
    case Kind::latency:
    case Kind::bandwidth_ratio:
      return fmt::format("{:.2f}x", amount);
    case Kind::latency_reduction:
    case Kind::gemm_time_share:
    case Kind::compute_bound:
    case Kind::coverage:
      return fmt::format("{:.0f} %", 100 * amount);
    case Kind::fits_in_memory:
      return fmt::format("{:.1f} GB", amount);
    case Kind::cost:
      return fmt::format("{:.3f} {}", amount, claim.figure.currency);
    case Kind::other:
      break;
  }
  return "-";
}

std::string figure_text(const Claim& claim) {
  const Figure& f = claim.figure;
  switch (claim.kind) {
    case Kind::latency:
      return fmt::format("{:.1f} to {:.1f} ms", f.before.value() * 1e3, f.after.value() * 1e3);
    case Kind::fits_in_memory:
      return "fits";
    case Kind::compute_bound:
      return "compute-bound";
    case Kind::cost:
      return amount_text(claim, f.cost.value());
    case Kind::other:
      return "-";
    default:
      break;
  }
  std::string text = amount_text(claim, f.ratio.least);
  if (f.ratio.most > f.ratio.least) {
    text = text.substr(0, text.find_first_of(" x")) + " to " + amount_text(claim, f.ratio.most);
  }
  if (f.at_least) text = "at least " + text;
  return (f.up_to ? "up to " : "") + text;
}

}  // namespace fuseline::audit
