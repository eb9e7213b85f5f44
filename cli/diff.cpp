// fuseline diff: what differs between two predictions.
#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/report/difference.h"
#include "sim/selection/saved_prediction.h"

namespace fuseline {

namespace {

// A scenario is predicted now; any other file is a prediction that was saved.
PredictedSide load_side(const std::string& path) {
  PredictedSide side{.name = path};
  if (path.ends_with(".toml")) {
    const Selection s = resolve_selection(path, {});
    side.gpu = s.gpu.name;
    side.workload = s.workload;
    for (const std::string& policy : s.policies) {
      side.plans.push_back(predict(plan_of(s, policy), s, nullptr).block);
    }
    return side;
  }
  SavedPredictions saved = load_predictions(path);
  side.gpu = saved.gpu;
  for (SavedPrediction& p : saved.list) {
    side.workload = p.block.workload;
    side.plans.push_back(std::move(p.estimate));
  }
  return side;
}

std::string signed_us(Seconds time) { return fmt::format("{:+.1f}", to_us(time)); }
std::string signed_mb(double bytes) { return fmt::format("{:+.1f}", bytes / 1e6); }

std::string kernels_table(const PlanDifference& d) {
  std::vector<std::vector<std::string>> rows;
  for (const KernelDifference& k : d.kernels) {
    const auto us = [](const std::optional<KernelEstimate>& e) {
      return e ? in_microseconds(e->time) : std::string("-");
    };
    if (k.before && k.after && k.time() == Seconds() && k.hbm_bytes() == 0) continue;
    rows.push_back(
        {k.name, us(k.before), us(k.after), signed_us(k.time()), signed_mb(k.hbm_bytes())});
  }
  if (rows.empty()) return "every kernel is the same\n";
  return format_table({{"kernel", Align::left}, {"A µs"}, {"B µs"}, {"difference µs"}, {"HBM MB"}},
                      rows);
}

std::string text_of(const std::vector<PlanDifference>& all) {
  std::string text;
  for (const PlanDifference& d : all) {
    text +=
        wrap(fmt::format("{}: B takes {} µs, A {} ({}); A over B {:.3f}x, 90 % {:.3f} to {:.3f}: "
                         "B is {}",
                         d.policy, in_microseconds(d.after.time), in_microseconds(d.before.time),
                         signed_percent(d.slower_by()), d.gain, d.gain * d.band.low,
                         d.gain * d.band.high, d.verdict)) +
        kernels_table(d) + "\n";
  }
  return text;
}

std::string json_of(const std::vector<PlanDifference>& all) {
  using nlohmann::ordered_json;
  ordered_json plans = ordered_json::array();
  for (const PlanDifference& d : all) {
    ordered_json kernels = ordered_json::array();
    for (const KernelDifference& k : d.kernels) {
      kernels.push_back({{"name", k.name},
                         {"in_a", k.before.has_value()},
                         {"in_b", k.after.has_value()},
                         {"time_us_difference", to_us(k.time())},
                         {"hbm_bytes_difference", static_cast<std::int64_t>(k.hbm_bytes())}});
    }
    plans.push_back({{"policy", d.policy},
                     {"time_us_a", to_us(d.before.time)},
                     {"time_us_b", to_us(d.after.time)},
                     {"slower", d.slower_by()},
                     {"gain", d.gain},
                     {"gain_low", d.gain * d.band.low},
                     {"gain_high", d.gain * d.band.high},
                     {"verdict", d.verdict},
                     {"kernels", std::move(kernels)}});
  }
  return json_text({{"schema", "fuseline.difference/1"}, {"plans", std::move(plans)}});
}

// "slower=3%" → 0.03.
double parse_fail_if(const std::string& text) {
  constexpr std::string_view kBegin = "slower=";
  if (!text.starts_with(kBegin) || !text.ends_with("%")) {
    throw InputError({.file = kCommandLine,
                      .field = "--fail-if",
                      .value = text,
                      .message = "is no such condition",
                      .allowed = "slower=N%, as in slower=3%"});
  }
  const std::string number = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  return parse_number("--fail-if", number, 0, 1e6) / 100;
}

}  // namespace

CommandResult diff_command(const Arguments& args) {
  std::vector<std::string> files;
  std::optional<std::string> fail_if, format;
  Options options("diff", "What differs between two predictions: kernels, bytes, time.",
                  {"fuseline diff before.json after.json --fail-if slower=3%",
                   "fuseline diff scenarios/llama2-7b-h100.toml scenarios/llama2-7b-h200.toml"});
  options.positional("A B", "two saved predictions (predict --format json) or scenarios (.toml)",
                     files, 2);
  options.text("--fail-if", "slower=N%", "exit status 1 where a policy of B is slower by more",
               fail_if);
  options.text("--format", "table|json", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const std::string chosen = parse_word("--format", format.value_or("table"), {"table", "json"});
  const double most = fail_if ? parse_fail_if(*fail_if) : std::numeric_limits<double>::infinity();
  if (files.size() != 2) {
    throw InputError({.file = kCommandLine,
                      .field = "A B",
                      .message = "two predictions are compared",
                      .allowed = "two files"});
  }
  const std::vector<PlanDifference> all = differences(load_side(files[0]), load_side(files[1]));
  if (all.empty()) {
    throw InputError({.file = files[1],
                      .message = "no policy of it is in " + files[0],
                      .allowed = "two predictions with a policy in common"});
  }
  CommandResult result{chosen == "json" ? json_of(all) : text_of(all), {}, ExitStatus::done};
  for (const PlanDifference& d : all) {
    if (d.slower_by() <= most) continue;
    result.messages += fmt::format("fuseline: {} is slower by {}, more than {}\n", d.policy,
                                   percent(d.slower_by()), percent(most));
    result.status = ExitStatus::check_failed;
  }
  return result;
}

}  // namespace fuseline
