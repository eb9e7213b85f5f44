#include "cli/measure_output.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/json_text.h"
#include "cli/compare_table.h"
#include "cli/table.h"

namespace fuseline {

namespace {

using cuda::MeasuredPolicy;
using cuda::TunedGemm;
using nlohmann::ordered_json;

PlanEstimate prediction_of(const Selection& selection, const MeasuredPolicy& p) {
  return simulate(plan_of(selection, p.policy), selection.gpu, Fidelity::hierarchy,
                  {.replay = true, .rotating = true, .runs = 2, .launching = selection.launching});
}

std::string error_of(double predicted, double measured) {
  return fmt::format("{:+.1f} %", 100.0 * (predicted / measured - 1.0));
}

// The output whose error is the largest beside the unfused one's.
const executor::ComparedTensor* worst_output(const MeasuredPolicy& p) {
  const executor::ComparedTensor* worst = nullptr;
  for (const executor::ComparedTensor& t : p.tensors)
    if (t.output && (worst == nullptr || t.ratio > worst->ratio)) worst = &t;
  return worst;
}

std::string blocks_table(const Selection& selection, const cuda::GpuMeasurement& m) {
  std::vector<std::vector<std::string>> rows;
  for (const MeasuredPolicy& p : m.policies) {
    const PlanEstimate e = prediction_of(selection, p);
    const MeasuredBlock& b = p.block;
    std::vector<std::string> row = {p.policy, fmt::format("{:.1f}", to_us(b.time.median)),
                                    fmt::format("{:.1f}", to_us(b.time.least)),
                                    fmt::format("{:.1f}", to_us(e.time)),
                                    error_of(e.time.value(), b.time.median.value())};
    if (b.hbm_read && b.hbm_write) {
      const Bytes measured = *b.hbm_read + *b.hbm_write;
      row.push_back(megabytes(measured));
      row.push_back(error_of((e.hbm_read + e.hbm_write).as_double(), measured.as_double()));
    } else {
      row.insert(row.end(), {"-", "-"});
    }
    row.push_back(b.sm_clock_median ? fmt::format("{:.0f}", b.sm_clock_median->value() * 1e-6)
                                    : "-");
    row.push_back(b.power ? fmt::format("{:.0f}", b.power->value()) : "-");
    const auto* worst = worst_output(p);
    row.push_back(worst == nullptr ? "-" : fmt::format("{:.2f}", worst->ratio));
    row.push_back(p.passed() ? (worst == nullptr ? "" : "pass") : "FAIL");
    rows.push_back(std::move(row));
  }
  return format_table({{"policy", Align::left},
                       {"time µs"},
                       {"least"},
                       {"predicted"},
                       {"error"},
                       {"HBM MB"},
                       {"error"},
                       {"MHz"},
                       {"W"},
                       {"ratio"},
                       {"", Align::left}},
                      rows);
}

std::string tuned_table(const MeasuredPolicy& p) {
  std::vector<std::vector<std::string>> rows;
  const auto tile = [](const GemmTile& t) {
    return fmt::format("{} x {} / {}", t.m, t.n, t.cluster());
  };
  for (const TunedGemm& t : p.tuned)
    rows.push_back({t.kernel, fmt::format("{} x {} x {}", t.M, t.N, t.K), tile(t.chosen),
                    fmt::format("{:.2f}", to_us(t.chosen_time)), tile(t.best),
                    fmt::format("{:.2f}", to_us(t.best_time)),
                    error_of(t.chosen_time.value(), t.best_time.value()),
                    std::to_string(t.tried.size())});
  return "\n" + p.policy + ": tiles of our own GEMMs (rows x columns / cluster)\n" +
         format_table({{"kernel", Align::left},
                       {"M x N x K", Align::left},
                       {"chosen", Align::left},
                       {"µs"},
                       {"fastest", Align::left},
                       {"µs"},
                       {"chosen is"},
                       {"of"}},
                      rows);
}

// How many times as fast a policy is as a rival.
double speed_up(const MeasuredPolicy& p, const MeasuredBlock& rival) {
  return rival.time.median / p.block.time.median;
}

std::string rivals_table(const cuda::GpuMeasurement& m) {
  std::vector<std::vector<std::string>> rows;
  std::string speeds;
  for (const MeasuredBlock& b : m.rivals) {
    const std::string& name = b.block.execution;
    rows.push_back(
        {name, fmt::format("{:.1f}", to_us(b.time.median)),
         fmt::format("{:.1f}", to_us(b.time.least)),
         b.sm_clock_median ? fmt::format("{:.0f}", b.sm_clock_median->value() * 1e-6) : "-",
         b.power ? fmt::format("{:.0f}", b.power->value()) : "-"});
    std::string line;
    for (const MeasuredPolicy& p : m.policies)
      line += fmt::format("{}{} is {:.2f}", line.empty() ? "" : ", ", p.policy, speed_up(p, b));
    speeds += wrap(fmt::format("{} times as fast as {}", line, name));
  }
  return fmt::format("\n{}, timed in turns with ours\n", m.rival_framework) +
         format_table({{"rival", Align::left}, {"time µs"}, {"least"}, {"MHz"}, {"W"}}, rows) +
         speeds;
}

std::string details(const cuda::GpuMeasurement& m) {
  std::string text =
      wrap(fmt::format("{}; driver {}; {}{}", m.device, m.driver.empty() ? "unknown" : m.driver,
                       m.toolkit, m.libraries.empty() ? "" : "; " + m.libraries));
  if (m.counters) text += wrap("counters checked: " + cuda::describe(*m.counters));
  if (!m.checked_as.model.empty())
    text += wrap("outputs checked against fp64 at " + m.checked_as.label() +
                 "; ratio: worst output's error over that of unfused execution here");
  for (const std::string& note : m.notes) text += wrap("note: " + note);
  return text;
}

ordered_json checked_tensor_json(const executor::ComparedTensor& t) {
  return {{"name", t.name},
          {"kernel", t.kernel},
          {"output", t.output},
          {"relative_l2", t.error.relative_l2},
          {"unfused_relative_l2", t.unfused.relative_l2},
          {"ratio", t.ratio},
          {"problem", t.problem}};
}

void add_state(ordered_json& j, const MeasuredBlock& b) {
  if (b.sm_clock_median) j["sm_mhz"] = b.sm_clock_median->value() * 1e-6;
  if (b.power) j["power_w"] = b.power->value();
}

// "speed_up": how many times as fast each of our policies is.
ordered_json rival_json(const cuda::GpuMeasurement& m, const MeasuredBlock& b) {
  ordered_json speeds = ordered_json::object();
  for (const MeasuredPolicy& p : m.policies) speeds[p.policy] = speed_up(p, b);
  ordered_json j = {{"execution", b.block.execution},     {"framework", m.rival_framework},
                    {"time_us", to_us(b.time.median)},    {"time_us_least", to_us(b.time.least)},
                    {"time_us_most", to_us(b.time.most)}, {"throttle", b.throttle},
                    {"speed_up", std::move(speeds)}};
  add_state(j, b);
  return j;
}

ordered_json policy_json(const Selection& selection, const MeasuredPolicy& p) {
  const PlanEstimate e = prediction_of(selection, p);
  const MeasuredBlock& b = p.block;
  ordered_json kernels = ordered_json::array(), tensors = ordered_json::array(),
               tuned = ordered_json::array();
  if (p.trace)
    for (const MeasuredKernel& k : p.trace->kernels)
      kernels.push_back({{"name", k.site},
                         {"kind", name_of(k.kind())},
                         {"code", k.kernel},
                         {"tile", k.tile},
                         {"time_us", to_us(k.duration())},
                         {"hbm_read_bytes", k.hbm_read.value()},
                         {"hbm_write_bytes", k.hbm_write.value()},
                         {"l2_bytes", k.l2.value()}});
  for (const executor::ComparedTensor& t : p.tensors) tensors.push_back(checked_tensor_json(t));
  for (const TunedGemm& t : p.tuned) {
    ordered_json tried = ordered_json::array();
    for (const auto& [tile, time] : t.tried)
      tried.push_back({{"tile", {tile.m, tile.n, tile.k}},
                       {"cluster_m", tile.cluster_m},
                       {"cluster_k", tile.cluster_k},
                       {"tail_parts", tile.tail_parts},
                       {"time_us", to_us(time)}});
    tuned.push_back({{"kernel", t.kernel},
                     {"m", t.M},
                     {"n", t.N},
                     {"k", t.K},
                     {"chosen_tile", {t.chosen.m, t.chosen.n, t.chosen.k}},
                     {"chosen_time_us", to_us(t.chosen_time)},
                     {"best_tile", {t.best.m, t.best.n, t.best.k}},
                     {"best_time_us", to_us(t.best_time)},
                     {"tried", std::move(tried)}});
  }
  ordered_json j = {{"policy", p.policy},
                    {"time_us", to_us(b.time.median)},
                    {"time_us_least", to_us(b.time.least)},
                    {"time_us_most", to_us(b.time.most)},
                    {"predicted_time_us", to_us(e.time)},
                    {"predicted_hbm_bytes", (e.hbm_read + e.hbm_write).value()},
                    {"layers", p.layers},
                    {"library_gemms", p.library_gemms},
                    {"library_attentions", p.library_attentions},
                    {"throttle", b.throttle},
                    {"passed", p.passed()},
                    {"repeats", p.repeats}};
  if (b.hbm_read) j["hbm_read_bytes"] = b.hbm_read->value();
  if (b.hbm_write) j["hbm_write_bytes"] = b.hbm_write->value();
  if (b.l2) j["l2_bytes"] = b.l2->value();
  add_state(j, b);
  j["kernels"] = std::move(kernels);
  j["tensors"] = std::move(tensors);
  j["tuned"] = std::move(tuned);
  return j;
}

}  // namespace

std::string measurement_table(const Selection& selection, const cuda::GpuMeasurement& m,
                              bool kernels) {
  const BlockCase block{
      .model = selection.model.name, .execution = "", .workload = selection.workload};
  std::string text =
      fmt::format("{}, measured beside predicted for {}\n", block.label(), selection.gpu.name) +
      details(m) + "\n" + blocks_table(selection, m);
  if (!m.rivals.empty()) text += rivals_table(m);
  for (const MeasuredPolicy& p : m.policies) {
    if (kernels && p.trace) text += kernels_beside_text(*p.trace, prediction_of(selection, p));
    if (!p.tuned.empty()) text += tuned_table(p);
  }
  return text;
}

std::string measurement_json(const Selection& selection, const cuda::GpuMeasurement& m) {
  ordered_json policies = ordered_json::array(), rivals = ordered_json::array();
  for (const MeasuredBlock& b : m.rivals) rivals.push_back(rival_json(m, b));
  for (const MeasuredPolicy& p : m.policies) policies.push_back(policy_json(selection, p));
  const Workload& w = selection.workload;
  const ordered_json j = {{"schema", "fuseline.measurement/1"},
                          {"model", selection.model.name},
                          {"gpu", selection.gpu.name},
                          {"device", m.device},
                          {"driver", m.driver},
                          {"toolkit", m.toolkit},
                          {"libraries", m.libraries},
                          {"phase", name_of(w.phase)},
                          {"batch", w.batch},
                          {"seq", w.seq},
                          {"context", w.context},
                          {"dtype", name_of(w.dtype)},
                          {"notes", m.notes},
                          {"policies", std::move(policies)},
                          {"rivals", std::move(rivals)}};
  return json_text(j);
}

std::string first_failure(const cuda::GpuMeasurement& m) {
  for (const MeasuredPolicy& p : m.policies) {
    if (!p.not_finite.empty()) return fmt::format("{}: {} is not finite", p.policy, p.not_finite);
    for (const executor::ComparedTensor& t : p.tensors)
      if (!t.problem.empty())
        return fmt::format("{}: {} (kernel {}): {}", p.policy, t.name, t.kernel, t.problem);
    if (!p.repeats)
      return fmt::format("{}: the results after timing are not those before it", p.policy);
  }
  return {};
}

std::string recorded_command(const std::vector<std::string>& args, const std::string& command) {
  constexpr std::size_t kLongest = 900;  // twice as much where every character is escaped
  std::string line = fmt::format("fuseline {} {}", command, fmt::join(args, " "));
  for (char& c : line)
    if (c < ' ' || c > '~') c = '?';
  if (line.size() > kLongest) line = line.substr(0, kLongest) + " ...";
  return line;
}

}  // namespace fuseline
