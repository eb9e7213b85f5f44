#include "cli/predict_table.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/format.h"
#include "cli/table.h"
#include "model/policy.h"
#include "sim/gpu/standing.h"
#include "sim/report/energy.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

// The bound that sets most of the time, with its share: "tensor 71 %".
std::string dominant_bound(const PlanEstimate& e) {
  std::map<Bound, double> seconds;
  double total = 0;
  for (const KernelEstimate& k : e.kernels) {
    seconds[k.bound] += k.time.value();
    total += k.time.value();
  }
  if (total <= 0) return "-";
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return fmt::format("{} {:.0f} %", name_of(most->first), 100 * most->second / total);
}

std::string clocks_line(const Selection& s, const std::vector<Prediction>& predictions) {
  const auto [least, most] = std::minmax_element(
      predictions.begin(), predictions.end(), [](const Prediction& a, const Prediction& b) {
        return a.block.clock_factor < b.block.clock_factor;
      });
  const double boost = s.gpu.sm_clock.value() / 1e6;
  const double low = boost * least->block.clock_factor, high = boost * most->block.clock_factor;
  const std::string clock =
      high - low < 1 ? fmt::format("{:.0f}", low) : fmt::format("{:.0f} to {:.0f}", low, high);
  return fmt::format("{}; SM clock assumed {} MHz, HBM {:.2f} TB/s sustained of {:.2f}\n",
                     name_of(s.fidelity), clock, s.gpu.hbm_bandwidth_sustained.value() / 1e12,
                     s.gpu.hbm_bandwidth.value() / 1e12);
}

// Of launches one by one, where they keep the GPU waiting.
std::string waiting_lines(const std::vector<Prediction>& predictions) {
  std::string text;
  for (const Prediction& p : predictions) {
    if (p.block.launch_wait <= Seconds()) continue;
    text += fmt::format("{}: the GPU waits {} µs of {} for the CPU that launches\n", p.block.policy,
                        in_microseconds(p.block.launch_wait), in_microseconds(p.block.time));
  }
  return text;
}

std::string policies_table(const std::vector<Prediction>& predictions) {
  const PlanEstimate& base = baseline_of(predictions);
  std::vector<std::vector<std::string>> rows;
  for (const Prediction& p : predictions) {
    const PlanEstimate& e = p.block;
    const Bytes hbm = e.hbm_read + e.hbm_write;
    rows.push_back({e.policy, std::to_string(e.launches), in_microseconds(e.time),
                    times(base.time / e.time), megabytes(e.hbm_read), megabytes(e.hbm_write),
                    megabytes(e.l2), times(hbm.as_double() / e.limits.least.as_double()),
                    dominant_bound(e)});
  }
  return format_table({{"policy", Align::left},
                       {"launches"},
                       {"time µs"},
                       {"speed-up"},
                       {"HBM read"},
                       {"HBM write"},
                       {"L2"},
                       {"x least"},
                       {"time set by", Align::left}},
                      rows) +
         fmt::format(
             "speed-up over {}; HBM and L2 in MB; x least: HBM bytes over the least through HBM\n",
             base.policy);
}

std::string low_to_high(double value, const Band& band, int digits) {
  return fmt::format("{:.{}f} to {:.{}f}", value * band.low, digits, value * band.high, digits);
}

std::string in_millijoules(const Energy& e) {
  const double low = e.low.value() * 1e3, high = e.high.value() * 1e3;
  const int digits = high < 10 ? 2 : high < 1000 ? 1 : 0;
  return fmt::format("{:.{}f} to {:.{}f}", low, digits, high, digits);
}

// The 90 % bands, and what they make of the gain. A roofline has none.
std::string sure_table(const Selection& s, const std::vector<Prediction>& predictions) {
  const PlanEstimate& base = baseline_of(predictions);
  const Sureness sure(s.gpu, s.workload);
  std::vector<std::vector<std::string>> rows;
  for (const Prediction& p : predictions) {
    const PlanEstimate& e = p.block;
    const auto time = sure.time(e), hbm = sure.hbm(e), gain = sure.gain(base, e);
    if (!time || !hbm || !gain) return {};
    std::vector<std::string> row = {e.policy, in_percent(*time),
                                    low_to_high(to_us(e.time), *time, 1), in_percent(*hbm),
                                    in_millijoules(energy_of(e, s.gpu, *time))};
    if (e.policy == base.policy) {
      row.insert(row.end(), {"-", "-"});
    } else {
      const double ratio = base.time / e.time;
      row.insert(row.end(), {low_to_high(ratio, *gain, 2) + "x", verdict_of(ratio, *gain)});
    }
    rows.push_back(std::move(row));
  }
  return "\n" + format_table({{"90 % band", Align::left},
                              {"time"},
                              {"time µs"},
                              {"HBM"},
                              {"energy mJ"},
                              {"speed-up"},
                              {"than " + base.policy, Align::left}},
                             rows);
}

// Policies whose system's kernels nothing was compared with.
std::string unverified_lines(const std::vector<Prediction>& predictions) {
  std::string text;
  for (const PolicyInfo& p : policies()) {
    const bool shown = std::ranges::any_of(
        predictions, [&](const Prediction& x) { return x.block.policy == p.name; });
    if (shown && !p.unverified.empty())
      text += wrap(fmt::format("UNVERIFIED: {}: {}", p.name, p.unverified));
  }
  return text;
}

std::string limits_lines(const std::vector<Prediction>& predictions) {
  const Limits& l = predictions.front().block.limits;
  std::string text = fmt::format("limits: {} MB compulsory", megabytes(l.compulsory));
  text += fmt::format("; the least through HBM is {} MB", megabytes(l.least));
  if (megabytes(l.least) != megabytes(l.compulsory))
    text += ", L2 may keep the rest between blocks";
  if (l.capacity_bound > l.least)
    text += fmt::format("; {} MB at best with the on-chip capacity", megabytes(l.capacity_bound));
  return wrap(text + fmt::format("; {} µs at the limits", in_microseconds(l.time)));
}

// 10^9 bytes and 2^30 bytes: prices and datasheets mix them up.
std::string gb(Bytes bytes) {
  return bytes < Bytes(10'000'000) ? fmt::format("{:.2f} MB", bytes.as_double() / 1e6)
                                   : fmt::format("{:.2f} GB", bytes.as_double() / 1e9);
}
std::string gib(Bytes bytes) { return fmt::format("{:.2f} GiB", bytes.as_double() / (1 << 30)); }

std::string memory_parts(const MemoryNeed& need) {
  std::string text = "weights " + gb(need.weights);
  if (need.training > Bytes(0)) text += ", gradients and AdamW's state " + gb(need.training);
  if (need.kv_cache > Bytes(0)) text += ", KV cache " + gb(need.kv_cache);
  return text + ", activations " + gb(need.activations);
}

// One line for all policies that need the same, which decode's do nearly.
std::string memory_lines(const Selection& s, const std::vector<Prediction>& predictions) {
  const auto need = [](const Prediction& p) { return p.memory->total(); };
  const auto [least, most] =
      std::minmax_element(predictions.begin(), predictions.end(),
                          [&](const auto& a, const auto& b) { return need(a) < need(b); });
  const Bytes capacity = s.gpu.hbm_capacity;
  const std::string head = fmt::format("memory: {} ({}) of the GPU's {} ({})", gb(need(*most)),
                                       gib(need(*most)), gb(capacity), gib(capacity));
  std::string verdict = "fits";
  if (need(*least) > capacity) {
    verdict = fmt::format("does not fit; {} such GPUs at least", gpus_needed(need(*least), s.gpu));
  } else if (need(*most) > capacity) {
    std::vector<std::string> fitting;
    for (const Prediction& p : predictions) {
      if (need(p) <= capacity) fitting.push_back(p.block.policy);
    }
    verdict = fmt::format("fits only under {}", fmt::join(fitting, ", "));
  }
  const std::string whose =
      need(*least) == need(*most) ? "" : fmt::format(" under {}", most->block.policy);
  return wrap(fmt::format("{}: {}; {}{}", head, verdict, memory_parts(*most->memory), whose));
}

std::string cost_line(const Selection& s, const std::vector<Prediction>& predictions) {
  if (!cost_per_million_tokens(predictions.front(), s)) return {};
  const bool fits = std::all_of(predictions.begin(), predictions.end(), [&s](const auto& p) {
    return p.memory->total() <= s.gpu.hbm_capacity;
  });
  return wrap(fmt::format("cost: of a million {} tokens, at {:g} an hour of one busy GPU{}",
                          tokens_paid_for(s.workload.phase), s.price->value(),
                          fits ? "" : ", as if its memory always sufficed"));
}

// What one image takes, under every policy.
std::string image_lines(const Selection& s, const std::vector<Prediction>& predictions) {
  if (!s.image) return {};
  const ImageRun& image = *s.image;
  const std::int64_t images = s.workload.batch / (image.guided ? 2 : 1);
  std::vector<std::string> times;
  for (const Prediction& p : predictions)
    times.push_back(fmt::format("{} {:.3g} s", p.block.policy,
                                p.layers->time.value() * static_cast<double>(image.steps)));
  return wrap(fmt::format("{} of {} x {} pixels: {} tokens each, {} steps{}: {}",
                          images == 1 ? "an image" : fmt::format("{} images", images), image.width,
                          image.height, s.workload.seq, image.steps,
                          image.guided ? ", two branches of guidance side by side" : "",
                          fmt::join(times, ", ")));
}

std::string layers_table(const Selection& s, const std::vector<Prediction>& predictions) {
  const LayersEstimate& first = *predictions.front().layers;
  std::vector<Column> columns = {{"policy", Align::left}, {"launches"},
                                 {"latency ms"},          {"tokens/s"},
                                 {"HBM read GB"},         {"HBM write GB"}};
  if (cost_per_million_tokens(predictions.front(), s)) columns.push_back({"cost"});
  std::vector<std::vector<std::string>> rows;
  for (const Prediction& p : predictions) {
    const LayersEstimate& t = *p.layers;
    rows.push_back({p.block.policy, std::to_string(t.launches), in_milliseconds(t.time),
                    fmt::format("{:.1f}", t.tokens_per_second(s.workload)),
                    fmt::format("{:.2f}", t.hbm_read.as_double() / 1e9),
                    fmt::format("{:.2f}", t.hbm_write.as_double() / 1e9)});
    if (const auto cost = cost_per_million_tokens(p, s)) {
      rows.back().push_back(fmt::format("{:.4f}", cost->value()));
    }
  }
  const std::string notes = image_lines(s, predictions) + cost_line(s, predictions) +
                            (first.entry ? memory_lines(s, predictions) : "");
  const std::string blocks = fmt::format("{} block{}", first.layers, first.layers == 1 ? "" : "s");
  const bool loss = s.workload.phase == Phase::train && first.exit && s.model.V > 0;
  return fmt::format(
             "\n{}\n",
             first.entry
                 ? fmt::format("whole model: {}, {}{}{}{}", first.entry_name, blocks,
                               first.exit ? ", " + first.exit_name : "", loss ? ", loss" : "",
                               s.workload.phase == Phase::train ? "; without the optimizer" : "")
                 : blocks) +
         format_table(columns, rows) + notes;
}

std::string source_line(const MeasurementMeta& meta) {
  std::string text = "measured: " + meta.title;
  std::string details;
  for (const std::string& part :
       {meta.device, meta.driver.empty() ? "" : "driver " + meta.driver, meta.toolkit, meta.date}) {
    if (!part.empty()) details += (details.empty() ? "" : "; ") + part;
  }
  return wrap(details.empty() ? text : text + " (" + details + ")");
}

// Empty when none of the policies was measured on this case.
std::string measured_table(const std::vector<Prediction>& predictions,
                           const MeasurementMeta& meta) {
  std::vector<std::vector<std::string>> rows;
  for (const Prediction& p : predictions) {
    if (!p.replayed) continue;
    const PlanEstimate& e = *p.replayed;
    std::vector<std::string> row = {e.policy};
    if (p.measured) {
      const Seconds truth = p.measured->time.median;
      row.insert(row.end(), {in_microseconds(e.time), in_microseconds(truth),
                             signed_percent(e.time / truth - 1)});
    } else {
      row.insert(row.end(), {in_microseconds(e.time), "-", "-"});
    }
    const Bytes hbm = e.hbm_read + e.hbm_write;
    row.push_back(megabytes(hbm));
    if (p.trace) {
      const Bytes truth = p.trace->hbm_read() + p.trace->hbm_write();
      row.insert(row.end(),
                 {megabytes(truth), signed_percent(hbm.as_double() / truth.as_double() - 1)});
    } else {
      row.insert(row.end(), {"-", "-"});
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return wrap("measured: nothing for this block and these policies");
  return source_line(meta) +
         "replays of one block on the same input, both predicted and measured\n" +
         format_table({{"policy", Align::left},
                       {"predicted µs"},
                       {"measured µs"},
                       {"error"},
                       {"predicted HBM MB"},
                       {"measured HBM MB"},
                       {"error"}},
                      rows);
}

}  // namespace

std::string describe(const Gpu& gpu, const std::string& prefix) {
  std::string text =
      wrap(prefix +
           fmt::format(
               "{}: {} SMs, boost {:.0f} MHz, {:.0f} TFLOP/s bf16, HBM {:.2f} TB/s, L2 {:.0f} MiB",
               gpu.title, gpu.sm_count, gpu.sm_clock.value() / 1e6, gpu.tensor_bf16.value() / 1e12,
               gpu.hbm_bandwidth.value() / 1e12, gpu.l2_capacity.as_double() / (1 << 20)));
  const std::string standing = standing_text(gpu);
  return standing.empty() ? text : text + wrap(standing);
}

std::string kernel_table(const std::vector<KernelEstimate>& kernels, const Sureness* sure,
                         const std::string& policy) {
  std::vector<Column> columns = {{"kernel", Align::left},
                                 {"kind", Align::left},
                                 {"time µs"},
                                 {"HBM read"},
                                 {"HBM write"},
                                 {"L2 MB"},
                                 {"bound", Align::left},
                                 {"tile", Align::left}};
  if (sure != nullptr) columns.insert(columns.begin() + 3, {"90 %"});
  std::vector<std::vector<std::string>> rows;
  for (const KernelEstimate& k : kernels) {
    std::string tile = k.tile.empty() ? "-" : fmt::format("{}", fmt::join(k.tile, "x"));
    if (k.split_k > 1) tile += fmt::format(" /{}", k.split_k);
    rows.push_back({k.name, name_of(k.kind), in_microseconds(k.time), megabytes(k.hbm_read),
                    megabytes(k.hbm_write), megabytes(k.l2), name_of(k.bound), tile});
    if (sure != nullptr) {
      rows.back().insert(rows.back().begin() + 3, in_percent(sure->time(k, policy)));
    }
  }
  return format_table(columns, rows);
}

std::string predictions_table(const Selection& selection,
                              const std::vector<Prediction>& predictions,
                              const MeasurementMeta* meta, bool kernels) {
  const std::string& model =
      selection.model.title.empty() ? selection.model.name : selection.model.title;
  std::string out = wrap(fmt::format("{}, one block of {}: {}", model, selection.model.layers,
                                     describe(selection.workload)));
  out += describe(selection.gpu) + clocks_line(selection, predictions) + "\n";
  out += policies_table(predictions) + waiting_lines(predictions) + unverified_lines(predictions) +
         limits_lines(predictions);
  out += sure_table(selection, predictions);
  if (predictions.front().layers) out += layers_table(selection, predictions);
  if (meta != nullptr) out += "\n" + measured_table(predictions, *meta);
  if (kernels) {
    const Sureness sure(selection.gpu, selection.workload);
    const bool bound = selection.fidelity == Fidelity::roofline;  // which has no band
    for (const Prediction& p : predictions) {
      out += "\n" + p.block.policy + "\n" +
             kernel_table(p.block.kernels, bound ? nullptr : &sure, p.block.policy);
    }
  }
  return out;
}

}  // namespace fuseline
