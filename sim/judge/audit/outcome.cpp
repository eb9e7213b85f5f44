#include "sim/judge/audit/outcome.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "sim/memory/memory_fit.h"

namespace fuseline::audit {

namespace {

PolicyCase case_of(const Claim& claim, const Setting& s, const std::string& policy) {
  const bool whole_model =
      claim.kind == Kind::latency || claim.kind == Kind::cost || claim.kind == Kind::fits_in_memory;
  return {s.model, s.gpu, policy, s.workload, whole_model};
}

double speed_up_of(const Claim& claim, double figure) {
  return claim.kind == Kind::latency_reduction ? 1 / (1 - figure) : figure;
}

double figure_of(const Claim& claim, double speed_up) {
  return claim.kind == Kind::latency_reduction ? 1 - 1 / speed_up : speed_up;
}

struct Part {
  Seconds time;
  Flops gemm_flops;
};

// The kernels of the claim's sites.
Part part_of(const Predicted& p, const std::vector<std::string>& sites) {
  Part part;
  for (const PredictedKernel& k : p.kernels) {
    if (std::find(sites.begin(), sites.end(), k.site) == sites.end()) continue;
    part.time += k.time;
    if (k.is_gemm) part.gemm_flops += k.flops;
  }
  return part;
}

// Why the limits forbid more than `limit`.
std::string against_limits(const SlowestBaseline& baseline, double limit) {
  if (baseline.measured) {
    return fmt::format("the measured baseline, {} us, is at most {:.2f}x above the limits",
                       in_microseconds(baseline.time), limit);
  }
  const std::string slower =
      baseline.factor > 1 + kTimeTolerance * 1.001
          ? fmt::format(", {:.2f}x slower than predicted as where it was measured,",
                        baseline.factor)
          : "";
  return fmt::format("the baseline{} is at most {:.2f}x above the limits", slower, limit);
}

// `least`: the time at the limits of what takes `before`.
double boldest_speed_up(Seconds slowest_before, Seconds least) {
  return slowest_before / least * (1 + kLimitTolerance);
}

void judge_speed_up(const Claim& claim, double speed_up, double limit, Outcome& out) {
  const Range supporting = supporting_speed_ups(claim);
  out.predicted = figure_of(claim, speed_up);
  out.limit = figure_of(claim, limit);
  // What was measured in this very setting counts, and not what was predicted of it.
  const std::vector<double> known =
      out.measured.empty() ? std::vector<double>{speed_up} : out.measured;
  out.reached = std::any_of(known.begin(), known.end(), [&](double ratio) {
    return ratio >= supporting.least && ratio <= supporting.most;
  });
  out.bolder = !out.reached && *std::max_element(known.begin(), known.end()) > supporting.most;
  const double needed = speed_up_of(claim, claim.figure.ratio.least - claim.figure.reading_error);
  out.possible = needed <= limit;
  if (!out.possible) out.obstacle = against_limits(out.baseline, limit);
}

Outcome compare(const Claim& claim, const Setting& s, const Predictions& predictions,
                const Baselines& baselines) {
  const Predicted& before = predictions.of(case_of(claim, s, s.baseline));
  const Predicted& after = predictions.of(case_of(claim, s, s.policy));
  Outcome out;
  if (claim.sites.empty()) {
    out.before = before.block.time;
    out.after = after.block.time;
    out.launches_before = before.block.launches;
    out.least = predictions.ceilings(s.model, s.gpu, s.workload).block;
    out.baseline = baselines.slowest(s, out.before, predictions);
    out.measured = baselines.speed_ups(s);
  } else {
    const Part part = part_of(before, claim.sites);
    out.before = part.time;
    out.after = part_of(after, claim.sites).time;
    // Of a part of the block only the GEMMs' FLOPs count: what its operands cost in memory depends
    // on its neighbours.
    out.least = part.gemm_flops / predictions.tensor_ceiling(s.gpu, s.workload);
    out.baseline = {out.before * (1 + kTimeTolerance), false, 1 + kTimeTolerance};
  }
  FUSELINE_ASSERT(out.after.value() > 0 && out.least.value() > 0, claim.id);
  judge_speed_up(claim, out.before / out.after, boldest_speed_up(out.baseline.time, out.least),
                 out);
  return out;
}

double utilisation(Bytes bytes, Seconds time, const Gpu& gpu) {
  return bytes.as_double() / (time.value() * gpu.hbm_bandwidth.value());
}

bool near(double predicted, double claimed, double tolerance) {
  return std::abs(predicted / claimed - 1) <= tolerance;
}

// Times and utilisations are of one GPU; bytes that differ between before and after are those that
// fusing saved.
std::string obstacle_to_latency(const Figure& f, const Outcome& o, Bytes baseline_bytes,
                                const Ceilings& least, const Gpu& gpu) {
  const Seconds fastest = least.model / (1 + kLimitTolerance);
  if (f.after < fastest) {
    return fmt::format("the least {} MB through HBM and the FLOPs alone take {} ms",
                       megabytes(least.model_bytes), in_milliseconds(fastest));
  }
  const auto moved = [&](Seconds time, double share) {
    return time.value() * share * gpu.hbm_bandwidth.value();
  };
  const double least_bytes = least.model_bytes.as_double();
  if (f.utilisation_after && moved(f.after, *f.utilisation_after) < 0.95 * least_bytes) {
    return fmt::format(
        "{:.0f} % of its bandwidth for {} ms moves less than the {} MB that must pass through HBM",
        100 * *f.utilisation_after, in_milliseconds(f.after), megabytes(least.model_bytes));
  }
  if (f.utilisation_before && f.utilisation_after) {
    const double claimed =
        moved(f.before, *f.utilisation_before) / moved(f.after, *f.utilisation_after);
    const double most = baseline_bytes.as_double() / least_bytes;
    if (claimed > most * (1 + kBytesTolerance)) {
      return fmt::format(
          "times and utilisations mean {:.0f} % fewer bytes, and at most {:.1f} % can be saved",
          100 * (1 - 1 / claimed), 100 * (1 - 1 / most));
    }
  }
  return o.limit < f.before / f.after ? against_limits(o.baseline, o.limit) : "";
}

Outcome compare_latency(const Claim& claim, const Setting& s, const Predictions& predictions,
                        const Baselines& baselines) {
  const Figure& f = claim.figure;
  const Gpu& gpu = predictions.gpu(s.gpu);
  const Predicted& baseline = predictions.of(case_of(claim, s, s.baseline));
  const PredictedWork& before = baseline.model;
  const PredictedWork& after = predictions.of(case_of(claim, s, s.policy)).model;
  const Ceilings least = predictions.ceilings(s.model, s.gpu, s.workload);
  Outcome out;
  out.before = before.time;
  out.after = after.time;
  out.least = least.model;
  out.predicted = before.time / after.time;
  // What is known of the block's time holds for the whole model.
  const SlowestBaseline block = baselines.slowest(s, baseline.block.time, predictions);
  out.baseline = {before.time * block.factor, block.measured, block.factor};
  out.limit = boldest_speed_up(out.baseline.time, least.model);
  const auto same_use = [&](const PredictedWork& e, const std::optional<double>& claimed) {
    return !claimed || std::abs(utilisation(e.hbm_read + e.hbm_write, e.time, gpu) - *claimed) <=
                           kTimeTolerance;
  };
  out.reached = near(out.before.value(), f.before.value(), kTimeTolerance) &&
                near(out.after.value(), f.after.value(), kTimeTolerance) &&
                same_use(before, f.utilisation_before) && same_use(after, f.utilisation_after);
  out.obstacle = obstacle_to_latency(f, out, before.hbm_read + before.hbm_write, least, gpu);
  out.possible = out.obstacle.empty();
  out.reached = out.reached && out.possible;
  return out;
}

Outcome gemm_share(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Predicted& p = predictions.of(case_of(claim, s, s.baseline));
  Outcome out;
  Seconds gemms;
  for (const PredictedKernel& k : p.kernels) {
    if (k.is_gemm) gemms += k.time;
  }
  out.before = out.after = p.block.time;
  out.least = predictions.ceilings(s.model, s.gpu, s.workload).block;
  out.predicted = gemms / p.block.time;
  out.limit = 1;
  const double margin = kShareTolerance + claim.figure.reading_error;
  out.reached = out.predicted >= claim.figure.ratio.least - margin &&
                out.predicted <= claim.figure.ratio.most + margin;
  out.bolder = out.predicted > claim.figure.ratio.most + margin;
  out.possible = true;
  return out;
}

Bytes weights_at(std::int64_t parameters, std::int64_t bits) {
  return Bytes(ceil_div(parameters * bits, 8));
}

// Counted in bits where the file says how many a weight has; in a number format with its scales,
// and the ends in the workload's type.
Bytes weights_of(const Setting& s, const ModelConfig& config) {
  return s.workload.formats.weights.quantised()
             ? weight_bytes(config, s.workload)
             : weights_at(parameter_count(config), s.weight_bits);
}

Bytes need_of(const Claim& claim, const Setting& s, const std::string& policy,
              const Predictions& predictions) {
  const ModelConfig& config = predictions.model(s.model);
  return weights_of(s, config) + kv_cache_bytes(config, s.workload) +
         predictions.of(case_of(claim, s, policy)).activations;
}

Outcome fit(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Bytes capacity = predictions.gpu(s.gpu).hbm_capacity;
  const Bytes need = need_of(claim, s, s.policy, predictions);
  const Bytes weights = weights_of(s, predictions.model(s.model));
  Outcome out;
  if (!s.baseline.empty()) out.before_too = need_of(claim, s, s.baseline, predictions) <= capacity;
  out.predicted = need.as_double() / 1e9;
  out.limit = weights.as_double() / 1e9;
  out.reached = need <= capacity && !out.before_too;
  out.possible = weights <= capacity;
  if (!out.possible) {
    out.obstacle = fmt::format("the weights alone are {:.1f} GB ({:.1f} GiB)", out.limit,
                               weights.as_double() / (1 << 30));
  }
  return out;
}

Outcome cost(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const MoneyPerHour price(s.price);
  Outcome out;
  out.after = predictions.of(case_of(claim, s, s.policy)).model.time;
  out.before = out.after;
  out.least = predictions.ceilings(s.model, s.gpu, s.workload).model;
  out.predicted = cost_per_million_tokens(price, out.after, s.workload).value();
  out.limit = cost_per_million_tokens(price, out.least / (1 + kLimitTolerance), s.workload).value();
  out.reached = out.predicted <= claim.figure.cost.value() * (1 + kTimeTolerance);
  out.possible = out.limit <= claim.figure.cost.value();
  out.gpus = gpus_needed(need_of(claim, s, s.policy, predictions), predictions.gpu(s.gpu));
  if (!out.possible) {
    out.obstacle = fmt::format("at {:g} {} an hour the limits alone cost {:.3f}", s.price,
                               claim.figure.currency, out.limit);
  }
  return out;
}

// Which of the two takes longer at the rates that the limits take.
Outcome compute_bound(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Gpu& gpu = predictions.gpu(s.gpu);
  const auto tensor_share = [&](const PredictedWork& e) {
    const Seconds tensor = e.flops / predictions.tensor_ceiling(s.gpu, s.workload);
    return tensor / std::max(tensor, (e.hbm_read + e.hbm_write) / gpu.hbm_bandwidth_sustained);
  };
  const PredictedWork& before = predictions.of(case_of(claim, s, s.baseline)).block;
  const PredictedWork& after = predictions.of(case_of(claim, s, s.policy)).block;
  const Seconds tensor = after.flops / predictions.tensor_ceiling(s.gpu, s.workload);
  Outcome out;
  out.before = before.time;
  out.after = after.time;
  out.least = predictions.ceilings(s.model, s.gpu, s.workload).block;
  out.predicted = tensor_share(after);
  out.limit = std::min(1.0, tensor / out.least * (1 + kLimitTolerance));
  out.reached = out.predicted * (1 + kBytesTolerance) >= 1 && tensor_share(before) < 1;
  out.possible = out.limit >= 1;
  if (!out.possible) {
    out.obstacle = fmt::format(
        "even the least bytes through HBM take longer than all FLOPs, which need {:.1f} % of that "
        "time",
        100 * out.limit);
  }
  return out;
}

Outcome coverage(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Predicted& p = predictions.of(case_of(claim, s, s.policy));
  Outcome out;
  out.before = out.after = p.block.time;
  out.least = predictions.ceilings(s.model, s.gpu, s.workload).block;
  out.predicted = (claim.part == "attention" ? p.attention : p.others).share();
  out.limit = 1;
  out.possible = true;
  out.reached = out.predicted >= claim.figure.ratio.least - kShareTolerance;
  out.bolder = !claim.figure.at_least && out.predicted > claim.figure.ratio.most + kShareTolerance;
  return out;
}

// A fused multiply-add of fp32 takes three operands of four bytes from the registers.
constexpr double kBytesPerFlop = 3 * 4 / 2.0;

BytesPerSecond bandwidth(const Gpu& gpu, const std::string& level) {
  if (level == "l2") return gpu.l2_bandwidth;
  if (level == "registers") return BytesPerSecond(gpu.vector_fp32.value() * kBytesPerFlop);
  return BytesPerSecond(static_cast<double>(gpu.sm_count * gpu.smem_bytes_per_clock) *
                        gpu.sm_clock.value());
}

Outcome bandwidth_ratio(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Gpu& gpu = predictions.gpu(s.gpu);
  const Figure& f = claim.figure;
  Outcome out;
  out.predicted = out.limit = bandwidth(gpu, s.level) / gpu.hbm_bandwidth;
  out.reached = out.predicted >= f.ratio.least - f.reading_error &&
                (f.at_least || out.predicted <= f.ratio.most + f.reading_error);
  out.bolder = out.predicted > f.ratio.most + f.reading_error;
  out.possible = out.predicted >= f.ratio.least - f.reading_error;
  if (!out.possible) {
    out.obstacle = fmt::format("{:.0f} GB/s are {:.1f} times the {:.0f} GB/s of HBM",
                               bandwidth(gpu, s.level).value() / 1e9, out.predicted,
                               gpu.hbm_bandwidth.value() / 1e9);
  }
  return out;
}

}  // namespace

Range supporting_speed_ups(const Claim& claim) {
  const Figure& f = claim.figure;
  const Range range = {speed_up_of(claim, f.ratio.least - f.reading_error) * (1 - kRatioTolerance),
                       speed_up_of(claim, f.ratio.most + f.reading_error) * (1 + kRatioTolerance)};
  if (!f.up_to && !f.at_least) return range;
  return {range.least, std::numeric_limits<double>::infinity()};
}

std::vector<PolicyCase> cases_of(const Claim& claim, const Setting& s) {
  std::vector<PolicyCase> out;
  if (claim.kind == Kind::bandwidth_ratio) return out;
  for (const std::string& policy : {s.baseline, s.policy}) {
    if (!policy.empty()) out.push_back(case_of(claim, s, policy));
  }
  return out;
}

Outcome evaluate(const Claim& claim, const Setting& s, const Predictions& predictions,
                 const Baselines& baselines) {
  switch (claim.kind) {
    case Kind::speed_up:
    case Kind::latency_reduction:
      return compare(claim, s, predictions, baselines);
    case Kind::latency:
      return compare_latency(claim, s, predictions, baselines);
    case Kind::gemm_time_share:
      return gemm_share(claim, s, predictions);
    case Kind::fits_in_memory:
      return fit(claim, s, predictions);
    case Kind::cost:
      return cost(claim, s, predictions);
    case Kind::compute_bound:
      return compute_bound(claim, s, predictions);
    case Kind::coverage:
      return coverage(claim, s, predictions);
    case Kind::bandwidth_ratio:
      return bandwidth_ratio(claim, s, predictions);
    case Kind::other:
      break;
  }
  FUSELINE_ASSERT(false, claim.id);
}

}  // namespace fuseline::audit
