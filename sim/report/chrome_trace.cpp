#include "sim/report/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/version.h"
#include "sim/gpu/standing.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

constexpr int kPredictedRow = 1, kMeasuredRow = 2;

// Names a process or a row: `what` is "process_name" or "thread_name".
ordered_json name_event(const char* what, std::size_t process, int row, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}};
}

ordered_json span(const std::string& name, const std::string& category, std::size_t process,
                  int row, Seconds begin, Seconds time, ordered_json facts) {
  return {{"name", name},       {"cat", category}, {"ph", "X"},  {"ts", to_us(begin)},
          {"dur", to_us(time)}, {"pid", process},  {"tid", row}, {"args", std::move(facts)}};
}

void put_predicted_row(ordered_json& events, std::size_t process, const PlanEstimate& e) {
  events.push_back(name_event("thread_name", process, kPredictedRow, "predicted"));
  Seconds at;
  for (const KernelEstimate& k : e.kernels) {
    events.push_back(span(k.name, name_of(k.kind), process, kPredictedRow, at, k.time,
                          {{"operators", k.operators},
                           {"bound", name_of(k.bound)},
                           {"flops", k.flops.value()},
                           {"hbm_read_bytes", k.hbm_read.value()},
                           {"hbm_write_bytes", k.hbm_write.value()},
                           {"l2_bytes", k.l2.value()},
                           {"tile", k.tile}}));
    at += k.time;
  }
}

void put_measured_row(ordered_json& events, std::size_t process, const MeasuredTrace& trace) {
  events.push_back(name_event("thread_name", process, kMeasuredRow, "measured, end to end"));
  Seconds at;
  for (const MeasuredKernel& k : trace.kernels) {
    ordered_json facts = {{"kernel", k.kernel},
                          {"hbm_read_bytes", k.hbm_read.value()},
                          {"hbm_write_bytes", k.hbm_write.value()},
                          {"l2_bytes", k.l2.value()}};
    if (!k.grid.empty()) facts["grid"] = k.grid;
    if (!k.block.empty()) facts["block"] = k.block;
    events.push_back(span(k.site.empty() ? k.kernel : k.site, name_of(k.kind()), process,
                          kMeasuredRow, at, k.duration(), std::move(facts)));
    at += k.duration();
  }
}

}  // namespace

std::string chrome_trace(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  ordered_json events = ordered_json::array();
  for (std::size_t p = 0; p < predictions.size(); ++p) {
    const std::size_t process = p + 1;
    events.push_back(name_event("process_name", process, 0, predictions[p].block.policy));
    put_predicted_row(events, process, predictions[p].block);
    if (predictions[p].trace) put_measured_row(events, process, *predictions[p].trace);
  }
  return json_text({{"traceEvents", std::move(events)},
                    {"displayTimeUnit", "ns"},
                    {"otherData",
                     {{"producer", std::string("fuseline ") + kVersion},
                      {"model", c.model.name},
                      {"workload", describe(c.workload)},
                      {"gpu", c.gpu.name},
                      {"gpu_standing", name_of(standing_of(c.gpu))}}}});
}

}  // namespace fuseline
