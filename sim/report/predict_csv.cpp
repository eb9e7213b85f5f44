#include "sim/report/predict_csv.h"

#include <fmt/format.h>
#include "base/csv_text.h"
#include "sim/report/energy.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

constexpr const char* kCaseColumns = "model,gpu,phase,batch,seq,context,dtype,policy,fidelity";

std::string case_cells(const PredictionCase& s, const PlanEstimate& e) {
  const Workload& w = s.workload;
  return fmt::format("{},{},{},{},{},{},{},{},{}", csv_cell(s.model.name), csv_cell(s.gpu.name),
                     name_of(w.phase), w.batch, w.seq, w.context, name_of(w.dtype), e.policy,
                     name_of(e.fidelity));
}

// The last columns, and the end of the line; empty cells for a roofline.
std::string band_cells(const Sureness& sure, const Gpu& gpu, const PlanEstimate& base,
                       const PlanEstimate& e) {
  const auto time = sure.time(e), hbm = sure.hbm(e), gain = sure.gain(base, e);
  if (!time || !hbm || !gain) return ",,,,,,,,,,,\n";
  const Bytes bytes = e.hbm_read + e.hbm_write;
  const double ratio = base.time / e.time;
  const Energy energy = energy_of(e, gpu, *time);
  return fmt::format(",{:.3f},{:.3f},{},{},{},{:.4f},{:.4f},{:.4f},{:.6g},{:.6g},{:.6g}\n",
                     to_us(low_end(e.time, *time)), to_us(high_end(e.time, *time)),
                     low_end(bytes, *hbm).value(), high_end(bytes, *hbm).value(), base.policy,
                     ratio, ratio * gain->low, ratio * gain->high, energy.value.value(),
                     energy.low.value(), energy.high.value());
}

// The same of one of its kernels.
std::string kernel_band_cells(const Sureness& sure, const PlanEstimate& e,
                              const KernelEstimate& k) {
  if (e.fidelity == Fidelity::roofline) return ",,,,";
  const Band time = sure.time(k, e.policy), hbm = sure.hbm(k, e.policy);
  const Bytes bytes = k.hbm_read + k.hbm_write;
  return fmt::format(",{:.3f},{:.3f},{},{}", to_us(low_end(k.time, time)),
                     to_us(high_end(k.time, time)), low_end(bytes, hbm).value(),
                     high_end(bytes, hbm).value());
}

}  // namespace

std::string predictions_csv_header() {
  return fmt::format(
      "{},launches,time_us,flops,hbm_read_bytes,hbm_write_bytes,l2_bytes,hbm_compulsory_bytes,"
      "limit_time_us,layers,total_time_us,tokens_per_s,measured_time_us,memory_need_bytes,"
      "memory_capacity_bytes,price_per_hour,cost_per_million_tokens,hbm_least_bytes,weights,kv,"
      "activations,time_us_low,time_us_high,hbm_bytes_low,hbm_bytes_high,gain_over,gain,gain_low,"
      "gain_high,energy_j,energy_j_low,energy_j_high\n",
      kCaseColumns);
}

std::string predictions_csv(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  return predictions_csv_header() + predictions_csv_rows(c, predictions);
}

std::string predictions_csv_rows(const PredictionCase& c,
                                 const std::vector<Prediction>& predictions) {
  if (predictions.empty()) return {};
  const PlanEstimate& base = baseline_of(predictions);
  const Sureness sure(c.gpu, c.workload);
  std::string out;
  for (const Prediction& p : predictions) {
    const PlanEstimate& e = p.block;
    out += fmt::format("{},{},{:.3f},{},{},{},{},{},{:.3f},", case_cells(c, e), e.launches,
                       to_us(e.time), e.flops.value(), e.hbm_read.value(), e.hbm_write.value(),
                       e.l2.value(), e.limits.compulsory.value(), to_us(e.limits.time));
    if (p.layers) {
      out += fmt::format("{},{:.3f},{:.1f}", p.layers->layers, to_us(p.layers->time),
                         p.layers->tokens_per_second(c.workload));
    } else {
      out += ",,";
    }
    out += p.measured ? fmt::format(",{:.3f},", to_us(p.measured->time.median)) : ",,";
    out += p.memory ? fmt::format("{},{},", p.memory->total().value(), c.gpu.hbm_capacity.value())
                    : ",,";
    const auto cost = cost_per_million_tokens(p, c);
    out += cost ? fmt::format("{:g},{:.4f}", c.price->value(), cost->value()) : ",";
    out += fmt::format(",{},{},{},{}", e.limits.least.value(), weights_text(c.workload),
                       cache_text(c.workload), activations_text(c.workload)) +
           band_cells(sure, c.gpu, base, e);
  }
  return out;
}

std::string kernels_csv(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  std::string out = fmt::format(
      "{},order,name,kind,operators,time_us,flops,hbm_read_bytes,hbm_write_bytes,l2_bytes,bound,"
      "tile,split_k,time_us_low,time_us_high,hbm_bytes_low,hbm_bytes_high,energy_j\n",
      kCaseColumns);
  const Sureness sure(c.gpu, c.workload);
  for (const Prediction& p : predictions) {
    for (std::size_t i = 0; i < p.block.kernels.size(); ++i) {
      const KernelEstimate& k = p.block.kernels[i];
      out += fmt::format("{},{},{},{},{},{:.3f},{},{},{},{},{},{},{}", case_cells(c, p.block), i,
                         csv_cell(k.name), name_of(k.kind), fmt::join(k.operators, " "),
                         to_us(k.time), k.flops.value(), k.hbm_read.value(), k.hbm_write.value(),
                         k.l2.value(), name_of(k.bound), fmt::join(k.tile, "x"), k.split_k) +
             kernel_band_cells(sure, p.block, k) +
             fmt::format(",{:.6g}\n", energy_of(k, c.gpu, {}).value.value());
    }
  }
  return out;
}

}  // namespace fuseline
