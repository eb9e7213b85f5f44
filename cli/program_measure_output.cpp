#include "cli/program_measure_output.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/wrap.h"
#include "cli/table.h"

namespace fuseline {

namespace {

using cuda::MeasuredPrograms;
using nlohmann::ordered_json;

std::string off(double predicted, double measured) {
  return fmt::format("{:+.1f} %", 100.0 * (predicted / measured - 1.0));
}

std::string plan_line(const std::string& what, const MeasuredPrograms& p) {
  std::string text = fmt::format("{}: {:.1f} µs, least {:.1f}, {} launches", what,
                                 to_us(p.time.median), to_us(p.time.least), p.kernels.size());
  if (p.hbm_read && p.hbm_write)
    text += fmt::format("; HBM {} MB by counters", megabytes(*p.hbm_read + *p.hbm_write));
  if (p.state.sm_clock_median)
    text += fmt::format("; {:.0f} MHz", p.state.sm_clock_median->value() * 1e-6);
  if (p.state.power_mean) text += fmt::format(", {:.0f} W", p.state.power_mean->value());
  return wrap(text);
}

std::string kernels_table_of(const cuda::ProgramMeasurement& m, const PlanEstimate& predicted) {
  std::vector<std::vector<std::string>> rows;
  for (const MeasuredKernel& k : m.programs.kernels) {
    const auto e = std::ranges::find(predicted.kernels, k.site, &KernelEstimate::name);
    if (e == predicted.kernels.end()) continue;
    std::vector<std::string> row = {k.site, fmt::format("{:.2f}", to_us(k.duration())),
                                    fmt::format("{:.2f}", to_us(e->time)),
                                    off(e->time.value(), k.duration().value())};
    if (m.programs.hbm_read) {
      row.push_back(megabytes(k.hbm_read + k.hbm_write));
      row.push_back(megabytes(e->hbm_read + e->hbm_write));
    } else {
      row.insert(row.end(), {"-", megabytes(e->hbm_read + e->hbm_write)});
    }
    rows.push_back(std::move(row));
  }
  return format_table(
      {{"kernel", Align::left}, {"time µs"}, {"predicted"}, {"error"}, {"HBM MB"}, {"predicted"}},
      rows);
}

std::string checks_text(const MeasuredPrograms& p) {
  std::vector<std::vector<std::string>> rows;
  std::int64_t rows_checked = 0;
  bool alone = false;
  for (const cuda::SeedRun& run : p.evidence.seeds) {
    rows_checked = run.check.rows;
    alone = run.check.alone;
    for (const VerifiedTensor& t : run.check.tensors) {
      rows.push_back({std::to_string(run.seed), t.name, t.program, fmt::format("{:.2e}", t.error),
                      fmt::format("{:.2e}", t.allowed), t.agrees() ? "pass" : "FAIL"});
      if (alone) rows.back().push_back(fmt::format("{} of {} rows", t.rows, t.of_rows));
    }
  }
  std::vector<Column> columns = {
      {"seed"},    {"tensor", Align::left}, {"stored by", Align::left}, {"error"},
      {"allowed"}, {"", Align::left}};
  std::string what =
      rows_checked == 0 ? "all rows" : fmt::format("{} rows of each tensor", rows_checked);
  if (alone) {
    what = "each program on its own with what the GPU stored before it, other rows for each seed";
    columns.push_back({"checked", Align::left});
  }
  return "\n" + wrap("outputs against fp64, " + what) + format_table(columns, rows);
}

ordered_json plan_json(const MeasuredPrograms& p) {
  ordered_json kernels = ordered_json::array();
  for (const MeasuredKernel& k : p.kernels) {
    ordered_json one = {{"name", k.site}, {"time_us", to_us(k.duration())}};
    if (p.hbm_read) {
      one["hbm_read_bytes"] = k.hbm_read.value();
      one["hbm_write_bytes"] = k.hbm_write.value();
    }
    kernels.push_back(std::move(one));
  }
  ordered_json checks = ordered_json::array();
  for (const cuda::SeedRun& run : p.evidence.seeds)
    for (const VerifiedTensor& t : run.check.tensors)
      checks.push_back({{"seed", run.seed},
                        {"tensor", t.name},
                        {"program", t.program},
                        {"rows", run.check.alone ? t.rows : run.check.rows},
                        {"alone", run.check.alone},
                        {"error", t.error},
                        {"allowed", t.allowed},
                        {"agrees", t.agrees()}});
  ordered_json faults = ordered_json::array();
  for (const cuda::ClaimFault& f : p.faults) faults.push_back({{"rule", f.rule}, {"text", f.text}});
  ordered_json out = {{"time_us", to_us(p.time.median)},    {"time_us_least", to_us(p.time.least)},
                      {"time_us_most", to_us(p.time.most)}, {"copies", p.copies},
                      {"kernels", std::move(kernels)},      {"checks", std::move(checks)},
                      {"faults", std::move(faults)}};
  if (p.hbm_read) out["hbm_read_bytes"] = p.hbm_read->value();
  if (p.hbm_write) out["hbm_write_bytes"] = p.hbm_write->value();
  return out;
}

}  // namespace

std::string program_measurement_text(const cuda::ProgramMeasurement& m,
                                     const PlanEstimate& predicted, const Gpu& gpu) {
  std::string text = wrap(fmt::format("on {}; driver {}; {}", m.device, m.driver, m.toolkit));
  text += plan_line("programs", m.programs);
  text += fmt::format("predicted: {:.1f} µs ({}), HBM {} MB\n", to_us(predicted.time),
                      off(predicted.time.value(), m.programs.time.median.value()),
                      megabytes(predicted.hbm_read + predicted.hbm_write));
  text += fmt::format("no GPU of this kind could take less than {:.1f} µs\n",
                      to_us(cuda::least_possible(m.programs.evidence, gpu)));
  if (m.unfused) {
    text += plan_line("the same maths without fusion, in turns", *m.unfused);
    if (m.passed() && m.unfused->faults.empty())
      text += fmt::format("the programs are {:.2f} times as fast\n",
                          m.unfused->time.median / m.programs.time.median);
    for (const cuda::ClaimFault& f : m.unfused->faults)
      text += wrap(fmt::format("no comparison: without fusion [{}] {}", f.rule, f.text));
  }
  text += "\n" + kernels_table_of(m, predicted) + checks_text(m.programs);
  for (const std::string& note : m.notes) text += wrap("note: " + note);
  for (const cuda::ClaimFault& f : m.programs.faults)
    text += wrap(fmt::format("refused [{}]: {}", f.rule, f.text));
  std::string stages;
  for (const cuda::MeasuringStage& stage : m.stages)
    stages += fmt::format("{}{} {:.1f} s", stages.empty() ? "" : ", ", stage.what, stage.seconds);
  text += wrap("seconds: " + stages);
  text += m.passed() ? fmt::format("accepted, {:.1f} s from the text to the end of the timing\n",
                                   m.seconds)
                     : "the time of these programs is no speed\n";
  return text;
}

ordered_json program_measurement_json(const cuda::ProgramMeasurement& m,
                                      const PlanEstimate& predicted, const Gpu& gpu) {
  ordered_json stages = ordered_json::array();
  for (const cuda::MeasuringStage& stage : m.stages)
    stages.push_back({{"what", stage.what}, {"seconds", stage.seconds}});
  ordered_json out = {{"device", m.device},
                      {"driver", m.driver},
                      {"toolkit", m.toolkit},
                      {"accepted", m.passed()},
                      {"seconds", m.seconds},
                      {"stages", std::move(stages)},
                      {"measured", plan_json(m.programs)},
                      {"predicted_time_us", to_us(predicted.time)},
                      {"predicted_hbm_bytes", (predicted.hbm_read + predicted.hbm_write).value()},
                      {"least_possible_us", to_us(cuda::least_possible(m.programs.evidence, gpu))},
                      {"notes", m.notes}};
  if (m.unfused) {
    out["unfused"] = plan_json(*m.unfused);
    if (m.passed() && m.unfused->faults.empty())
      out["gain"] = m.unfused->time.median / m.programs.time.median;
  }
  return out;
}

std::string unfused_prediction_text(const PlanEstimate& fused, const PlanEstimate& unfused) {
  return "\n" + wrap(fmt::format("the same maths without fusion, {} kernels: {:.1f} µs, HBM {} MB; "
                                 "the programs are predicted to be {:.2f} times as fast",
                                 unfused.kernels.size(), to_us(unfused.time),
                                 megabytes(unfused.hbm_read + unfused.hbm_write),
                                 unfused.time / fused.time));
}

}  // namespace fuseline
