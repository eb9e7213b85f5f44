#include "sim/report/json_output.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "sim/gpu/standing.h"
#include "sim/report/energy.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

// The ends of the 90 % bands of time and HBM bytes, into an object that has the estimates.
void put_bands(ordered_json& out, Seconds time, Bytes hbm, const Band& of_time,
               const Band& of_hbm) {
  out["time_us_low"] = to_us(low_end(time, of_time));
  out["time_us_high"] = to_us(high_end(time, of_time));
  out["hbm_bytes_low"] = low_end(hbm, of_hbm).value();
  out["hbm_bytes_high"] = high_end(hbm, of_hbm).value();
}

// Joules, with the ends of their band.
void put_energy(ordered_json& out, const Energy& energy) {
  out["energy_j"] = energy.value.value();
  out["energy_j_low"] = energy.low.value();
  out["energy_j_high"] = energy.high.value();
}

ordered_json limits_json(const Limits& limits) {
  return {{"compulsory_bytes", limits.compulsory.value()},
          {"own_bytes", limits.own.value()},
          {"least_bytes", limits.least.value()},
          {"capacity_bound_bytes", limits.capacity_bound.value()},
          {"time_us", to_us(limits.time)}};
}

ordered_json layers_json(const LayersEstimate& total, const Workload& workload) {
  return {{"layers", total.layers},
          {"whole_model", total.entry.has_value()},
          {"time_us", to_us(total.time)},
          {"flops", total.flops.value()},
          {"hbm_read_bytes", total.hbm_read.value()},
          {"hbm_write_bytes", total.hbm_write.value()},
          {"l2_bytes", total.l2.value()},
          {"launches", total.launches},
          {"tokens_per_s", total.tokens_per_second(workload)}};
}

// What the simulation says of replays on the same input, as they are measured.
ordered_json replay_json(const PlanEstimate& e) {
  return {{"time_us", to_us(e.time)},
          {"hbm_read_bytes", e.hbm_read.value()},
          {"hbm_write_bytes", e.hbm_write.value()}};
}

ordered_json measured_json(const Prediction& p) {
  ordered_json out = ordered_json::object();
  if (p.measured) out["time_us"] = to_us(p.measured->time.median);
  if (p.trace) {
    out["hbm_read_bytes"] = p.trace->hbm_read().value();
    out["hbm_write_bytes"] = p.trace->hbm_write().value();
  }
  if (p.replayed) out["predicted_replay"] = replay_json(*p.replayed);
  return out;
}

ordered_json kernel_object(const KernelEstimate& k) {
  return {{"name", k.name},
          {"kind", name_of(k.kind)},
          {"operators", k.operators},
          {"time_us", to_us(k.time)},
          {"flops", k.flops.value()},
          {"hbm_read_bytes", k.hbm_read.value()},
          {"hbm_write_bytes", k.hbm_write.value()},
          {"l2_bytes", k.l2.value()},
          {"hbm_compulsory_bytes", k.compulsory.value()},
          {"bound", name_of(k.bound)},
          {"tile", k.tile},
          {"split_k", k.split_k}};
}

ordered_json memory_json(const MemoryNeed& need, const Gpu& gpu) {
  return {
      {"weights_bytes", need.weights.value()},    {"training_bytes", need.training.value()},
      {"kv_cache_bytes", need.kv_cache.value()},  {"activations_bytes", need.activations.value()},
      {"need_bytes", need.total().value()},       {"capacity_bytes", gpu.hbm_capacity.value()},
      {"fits", need.total() <= gpu.hbm_capacity}, {"gpus_needed", gpus_needed(need.total(), gpu)}};
}

// Over the same plan as in tables, with what the band of the gain makes of it.
void put_gain(ordered_json& out, const PlanEstimate& base, const PlanEstimate& e,
              const Sureness& sure) {
  const auto band = sure.gain(base, e);
  if (!band) return;
  const double gain = base.time / e.time;
  out["gain_over"] = base.policy;
  out["gain"] = gain;
  out["gain_low"] = gain * band->low;
  out["gain_high"] = gain * band->high;
  out["verdict"] = base.policy == e.policy ? "the same" : verdict_of(gain, *band);
}

ordered_json kernels_json(const PlanEstimate& e, const Gpu& gpu, const Sureness& sure) {
  ordered_json kernels = ordered_json::array();
  for (const KernelEstimate& k : e.kernels) {
    kernels.push_back(kernel_object(k));
    if (e.fidelity == Fidelity::roofline) continue;
    put_bands(kernels.back(), k.time, k.hbm_read + k.hbm_write, sure.time(k, e.policy),
              sure.hbm(k, e.policy));
    put_energy(kernels.back(), energy_of(k, gpu, sure.time(k, e.policy)));
  }
  return kernels;
}

ordered_json one_prediction(const Prediction& p, const PredictionCase& c,
                            const PlanEstimate& base) {
  const PlanEstimate& e = p.block;
  const Sureness sure(c.gpu, c.workload);
  const auto of_time = sure.time(e), of_hbm = sure.hbm(e);
  ordered_json out = {{"policy", e.policy},
                      {"fidelity", name_of(e.fidelity)},
                      {"time_us", to_us(e.time)},
                      {"flops", e.flops.value()},
                      {"hbm_read_bytes", e.hbm_read.value()},
                      {"hbm_write_bytes", e.hbm_write.value()},
                      {"l2_bytes", e.l2.value()},
                      {"hbm_compulsory_bytes", e.limits.compulsory.value()},
                      {"hbm_least_bytes", e.limits.least.value()},
                      {"launches", e.launches},
                      {"launch", name_of(c.launching)},
                      {"launch_wait_us", to_us(e.launch_wait)},
                      {"clock_factor", e.clock_factor},
                      {"limits", limits_json(e.limits)}};
  if (of_time && of_hbm) put_bands(out, e.time, e.hbm_read + e.hbm_write, *of_time, *of_hbm);
  if (of_time) put_energy(out, energy_of(e, c.gpu, *of_time));
  put_gain(out, base, e, sure);
  if (p.layers) {
    const LayersEstimate& all = *p.layers;
    out["total"] = layers_json(all, c.workload);
    if (of_time && of_hbm) {
      put_energy(out["total"], energy_of(all, c.gpu, *of_time));
      put_bands(out["total"], all.time, all.hbm_read + all.hbm_write, *of_time, *of_hbm);
      out["total"]["tokens_per_s_low"] = all.tokens_per_second(c.workload) / of_time->high;
      out["total"]["tokens_per_s_high"] = all.tokens_per_second(c.workload) / of_time->low;
    }
  }
  if (p.layers && c.image)
    out["image"] = {{"width", c.image->width},
                    {"height", c.image->height},
                    {"steps", c.image->steps},
                    {"guidance", c.image->guided},
                    {"seconds", p.layers->time.value() * static_cast<double>(c.image->steps)}};
  if (const auto cost = cost_per_million_tokens(p, c)) {
    out["cost"] = {{"price_per_hour", c.price->value()},
                   {"per_million_tokens", cost->value()},
                   {"tokens", tokens_paid_for(c.workload.phase)}};
  }
  if (p.memory) out["memory"] = memory_json(*p.memory, c.gpu);
  if (p.measured || p.trace) out["measured"] = measured_json(p);
  out["kernels"] = kernels_json(e, c.gpu, sure);
  return out;
}

ordered_json checks_json(const Gpu& gpu) {
  ordered_json out = ordered_json::array();
  for (const GpuCheck& check : gpu.checks) {
    out.push_back({{"measurements", check.measurements},
                   {"policies", check.policies},
                   {"blocks", check.blocks},
                   {"mean_error", check.mean_error},
                   {"worst_error", check.worst_error},
                   {"date", check.date}});
  }
  return out;
}

ordered_json case_object(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  const Workload& w = c.workload;
  ordered_json list = ordered_json::array();
  for (const Prediction& p : predictions) {
    list.push_back(one_prediction(p, c, baseline_of(predictions)));
  }
  return {{"schema", kPredictionSchema},
          {"model", c.model.name},
          {"gpu", c.gpu.name},
          {"gpu_calibrated", c.gpu.calibrated},
          {"gpu_standing", name_of(standing_of(c.gpu))},
          {"gpu_checks", checks_json(c.gpu)},
          {"phase", name_of(w.phase)},
          {"batch", w.batch},
          {"seq", w.seq},
          {"context", w.context},
          {"dtype", name_of(w.dtype)},
          {"weights", weights_text(w)},
          {"activations", activations_text(w)},
          {"kv", cache_text(w)},
          {"routing", routing_text(w.routing)},
          {"predictions", std::move(list)}};
}

}  // namespace

std::string kernel_json(const KernelEstimate& kernel) { return json_text(kernel_object(kernel)); }

std::string kernel_json(const KernelEstimate& kernel, const Gpu& gpu, const Workload& workload) {
  ordered_json out = kernel_object(kernel);
  const Sureness sure(gpu, workload);
  put_bands(out, kernel.time, kernel.hbm_read + kernel.hbm_write, sure.time(kernel, {}),
            sure.hbm(kernel, {}));
  put_energy(out, energy_of(kernel, gpu, sure.time(kernel, {})));
  return json_text(out);
}

std::string predictions_json(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  return json_text(case_object(c, predictions));
}

std::string sweep_json(const std::vector<SweptCase>& cases) {
  ordered_json list = ordered_json::array();
  for (const SweptCase& c : cases) {
    ordered_json one = case_object(c.what, c.predictions);
    for (ordered_json& p : one["predictions"]) p.erase("kernels");
    list.push_back(std::move(one));
  }
  return json_text({{"schema", kSweepSchema}, {"cases", std::move(list)}});
}

}  // namespace fuseline
