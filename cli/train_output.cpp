#include "cli/train_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/table.h"

namespace fuseline {

using training::CurveVerdict;
using training::Training;
using training::Verdict;

std::string training_table(const TrainedModel& what, const Training& training,
                           const Verdict& verdict) {
  std::string text = wrap(
      fmt::format("{}, {:.2f} M parameters: {} steps of {} x {} characters, {}, seed {}",
                  what.model.title, static_cast<double>(training.parameters) * 1e-6, what.steps,
                  what.workload.batch, what.workload.seq, name_of(what.workload.dtype), what.seed));
  text += wrap(
      "AdamW on fp32 weights; gap: of the loss to the fp64 run of the same weights and batches");
  text += "\n";
  std::vector<std::vector<std::string>> rows;
  for (const CurveVerdict& c : verdict.curves) {
    const bool fp64 = c.name == training::kFp64Run;
    rows.push_back({c.name, fmt::format("{:.3f}", c.first), fmt::format("{:.3f}", c.last),
                    fp64 ? "-" : fmt::format("{:.3f}", c.largest_gap),
                    fp64 ? "-" : std::to_string(c.at_step),
                    fp64 ? "-" : fmt::format("{:.5f}", c.smoothed_gap),
                    c.allowed > 0 ? fmt::format("{:.5f}", c.allowed) : "-",
                    c.problem.empty() ? "pass" : "FAIL"});
  }
  const std::string over = fmt::format("over {}", verdict.window);
  text += format_table({{"run", Align::left},
                        {"first loss"},
                        {"last " + std::to_string(verdict.window)},
                        {"largest gap"},
                        {"at step"},
                        {over},
                        {"allowed"},
                        {"", Align::left}},
                       rows);
  for (const CurveVerdict& c : verdict.curves)
    if (!c.problem.empty()) text += wrap("FAIL " + c.name + ": " + c.problem);
  return text + "\n" + wrap(verdict.line());
}

std::string training_json(const TrainedModel& what, const Training& training,
                          const Verdict& verdict) {
  using nlohmann::ordered_json;
  ordered_json j;
  j["schema"] = "fuseline.training/1";
  j["model"] = what.model.name;
  j["parameters"] = training.parameters;
  j["batch"] = what.workload.batch;
  j["seq"] = what.workload.seq;
  j["dtype"] = name_of(what.workload.dtype);
  j["steps"] = what.steps;
  j["seed"] = what.seed;
  j["window"] = verdict.window;
  j["passed"] = verdict.passed();
  j["verdict"] = verdict.line();
  j["runs"] = ordered_json::array();
  for (std::size_t i = 0; i < verdict.curves.size(); ++i) {
    const CurveVerdict& c = verdict.curves[i];
    ordered_json run;
    run["name"] = c.name;
    run["first_loss"] = c.first;
    run["last_loss"] = c.last;
    run["largest_gap"] = c.largest_gap;
    run["at_step"] = c.at_step;
    run["smoothed_gap"] = c.smoothed_gap;
    run["allowed_gap"] = c.allowed > 0 ? ordered_json(c.allowed) : ordered_json(nullptr);
    run["problem"] = c.problem;
    run["losses"] = training.curves[i].losses;
    run["time_s"] = training.curves[i].time.value();
    j["runs"].push_back(std::move(run));
  }
  return json_text(j);
}

}  // namespace fuseline
