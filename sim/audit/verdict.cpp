#include "sim/audit/verdict.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/error.h"
#include "sim/audit/conditions.h"

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

Verdict in_some(const Claim& claim, const std::vector<Tried>& tried) {
  std::vector<Point> points;
  for (const Tried& t : tried) {
    points.push_back({dimensions(claim, t.setting), supports(t.outcome)});
  }
  const Conditions found = conditions_of(points);
  Verdict v{Judgement::only_if, found.necessary, {}};
  const std::size_t reached = count_if(tried, supports);
  v.reason = fmt::format("{} of {} settings reach it", reached, tried.size());
  if (!found.necessary.empty()) {
    v.reason += found.holding == found.meeting
                    ? ", all that meet these conditions"
                    : fmt::format(", {} of the {} that meet these conditions", found.holding,
                                  found.meeting);
  }
  if (found.necessary.empty()) {
    const std::string either = alternatives(points);
    v.conditions.push_back(either.empty() ? "the choices left open are the right ones" : either);
    v.reason += most_telling(points);
  }
  return v;
}

// How much nearer to the limits an implementation would have to come, where it has least to do.
Verdict beyond_predictions(const Claim& claim, const std::vector<Tried>& tried) {
  Verdict v{Judgement::only_if, {}, {}};
  const Tried& best = boldest(claim, tried);
  v.reason = fmt::format("no setting of {} reaches it, {} is the nearest ({})", tried.size(),
                         amount_text(claim, best.outcome.predicted), describe(claim, best.setting));
  if (claim.kind == Kind::speed_up || claim.kind == Kind::latency_reduction) {
    double least_needed = 1e300, there = 0;
    for (const Tried& t : tried) {
      if (!t.outcome.possible) continue;
      const double needed =
          t.outcome.least.value() * supporting_speed_ups(claim).least / t.outcome.before.value();
      if (needed < least_needed) {
        least_needed = needed;
        there = t.outcome.least / t.outcome.after;
      }
    }
    v.conditions.push_back(fmt::format(
        "kernels run at {:.0f} % of the limits, where {:.0f} % is predicted, or the baseline is "
        "slower than predicted",
        100 * least_needed, 100 * there));
  } else if (claim.kind == Kind::latency) {
    v.conditions.push_back("the GPU or its software is none of those tried");
  } else {
    v.conditions.push_back("an implementation better than any predicted here");
  }
  return v;
}

}  // namespace

Verdict judge(const Claim& claim, const std::vector<Tried>& tried) {
  if (claim.kind == Kind::other) return {Judgement::not_testable, {}, claim.why_not_testable};
  if (tried.empty()) {
    return {Judgement::not_testable, {}, "no combination of the choices can be predicted"};
  }
  const std::size_t supporting = count_if(tried, supports);
  if (count_if(tried, [](const Outcome& o) { return o.possible; }) == 0) {
    return contradiction(claim, tried);
  }
  if (supporting == tried.size()) {
    const bool more = count_if(tried, [](const Outcome& o) { return o.bolder; }) == tried.size();
    return {Judgement::plausible,
            {},
            fmt::format("{} predicted in {} setting{}{}", range_of(claim, tried), tried.size(),
                        tried.size() == 1 ? "" : "s", more ? ", all more than claimed" : "")};
  }
  return supporting > 0 ? in_some(claim, tried) : beyond_predictions(claim, tried);
}

const char* name_of(Judgement judgement) {
  switch (judgement) {
    case Judgement::plausible:
      return "plausible";
    case Judgement::only_if:
      return "plausible only if";
    case Judgement::contradicts:
      return "contradicts the limits";
    case Judgement::not_testable:
      return "not testable";
  }
  return "?";
}

std::string amount_text(const Claim& claim, double amount) {
  switch (claim.kind) {
    case Kind::speed_up:
    case Kind::latency:
      return fmt::format("{:.2f}x", amount);
    case Kind::latency_reduction:
    case Kind::gemm_time_share:
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
  return (f.up_to ? "up to " : "") + text;
}

}  // namespace fuseline::audit
