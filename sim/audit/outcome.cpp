#include "sim/audit/outcome.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/error.h"
#include "model/format.h"
#include "sim/memory_fit.h"

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

void judge_speed_up(const Claim& claim, double speed_up, double limit, Outcome& out) {
  const Range supporting = supporting_speed_ups(claim);
  out.predicted = figure_of(claim, speed_up);
  out.limit = figure_of(claim, limit);
  out.reached = speed_up >= supporting.least && speed_up <= supporting.most;
  out.bolder = speed_up > supporting.most;
  // The limit stands on the baseline's predicted time.
  const double needed = speed_up_of(claim, claim.figure.ratio.least - claim.figure.reading_error);
  out.possible = needed <= limit * (1 + kTimeTolerance);
  if (!out.possible) {
    out.obstacle = fmt::format("the baseline is at most {:.2f}x above the limits", limit);
  }
}

Outcome compare(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Predicted& before = predictions.of(case_of(claim, s, s.baseline));
  const Predicted& after = predictions.of(case_of(claim, s, s.policy));
  Outcome out;
  if (claim.sites.empty()) {
    out.before = before.block.time;
    out.after = after.block.time;
    out.launches_before = before.block.launches;
    out.least = predictions.ceilings(s.model, s.gpu, s.workload).block;
  } else {
    const Part part = part_of(before, claim.sites);
    out.before = part.time;
    out.after = part_of(after, claim.sites).time;
    // Of a part of the block only the GEMMs' FLOPs count: what its operands cost in memory depends
    // on its neighbours.
    out.least = part.gemm_flops / predictions.tensor_ceiling(s.gpu, s.workload.dtype);
  }
  FUSELINE_ASSERT(out.after.value() > 0 && out.least.value() > 0, claim.id);
  judge_speed_up(claim, out.before / out.after, out.before / out.least, out);
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
  if (f.after < least.model) {
    return fmt::format("the compulsory {} MB alone take {} ms", megabytes(least.model_bytes),
                       in_milliseconds(least.model));
  }
  const auto moved = [&](Seconds time, double share) {
    return time.value() * share * gpu.hbm_bandwidth.value();
  };
  const double compulsory = least.model_bytes.as_double();
  if (f.utilisation_after && moved(f.after, *f.utilisation_after) < 0.95 * compulsory) {
    return fmt::format("{:.0f} % of its bandwidth for {} ms moves less than the compulsory {} MB",
                       100 * *f.utilisation_after, in_milliseconds(f.after),
                       megabytes(least.model_bytes));
  }
  if (f.utilisation_before && f.utilisation_after) {
    const double claimed =
        moved(f.before, *f.utilisation_before) / moved(f.after, *f.utilisation_after);
    const double most = baseline_bytes.as_double() / compulsory;
    if (claimed > most * (1 + kBytesTolerance)) {
      return fmt::format(
          "times and utilisations mean {:.0f} % fewer bytes, and at most {:.1f} % can be saved",
          100 * (1 - 1 / claimed), 100 * (1 - 1 / most));
    }
  }
  if (o.before / o.least * (1 + kTimeTolerance) < f.before / f.after) {
    return fmt::format("the baseline is at most {:.2f}x above the limits", o.before / o.least);
  }
  return {};
}

Outcome compare_latency(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Figure& f = claim.figure;
  const Gpu& gpu = predictions.gpu(s.gpu);
  const LayersEstimate& before = predictions.of(case_of(claim, s, s.baseline)).model;
  const LayersEstimate& after = predictions.of(case_of(claim, s, s.policy)).model;
  const Ceilings least = predictions.ceilings(s.model, s.gpu, s.workload);
  Outcome out;
  out.before = before.time;
  out.after = after.time;
  out.least = least.model;
  out.predicted = before.time / after.time;
  out.limit = before.time / least.model;
  const auto same_use = [&](const LayersEstimate& e, const std::optional<double>& claimed) {
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

Bytes need_of(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const ModelConfig& config = predictions.model(s.model);
  return weights_at(parameter_count(config), s.weight_bits) + kv_cache_bytes(config, s.workload) +
         predictions.of(case_of(claim, s, s.policy)).activations;
}

Outcome fit(const Claim& claim, const Setting& s, const Predictions& predictions) {
  const Bytes capacity = predictions.gpu(s.gpu).hbm_capacity;
  const Bytes need = need_of(claim, s, predictions);
  const Bytes weights = weights_at(parameter_count(predictions.model(s.model)), s.weight_bits);
  Outcome out;
  out.predicted = need.as_double() / 1e9;
  out.limit = weights.as_double() / 1e9;
  out.reached = need <= capacity;
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
  out.limit = cost_per_million_tokens(price, out.least, s.workload).value();
  out.reached = out.predicted <= claim.figure.cost.value() * (1 + kTimeTolerance);
  out.possible = out.limit <= claim.figure.cost.value();
  out.gpus = gpus_needed(need_of(claim, s, predictions), predictions.gpu(s.gpu));
  if (!out.possible) {
    out.obstacle = fmt::format("at {:g} {} an hour the limits alone cost {:.3f}", s.price,
                               claim.figure.currency, out.limit);
  }
  return out;
}

}  // namespace

Range supporting_speed_ups(const Claim& claim) {
  const Figure& f = claim.figure;
  const Range range = {speed_up_of(claim, f.ratio.least - f.reading_error) * (1 - kRatioTolerance),
                       speed_up_of(claim, f.ratio.most + f.reading_error) * (1 + kRatioTolerance)};
  if (!f.up_to) return range;
  return {range.least, std::numeric_limits<double>::infinity()};
}

std::vector<PolicyCase> cases_of(const Claim& claim, const Setting& s) {
  std::vector<PolicyCase> out;
  for (const std::string& policy : {s.baseline, s.policy}) {
    if (!policy.empty()) out.push_back(case_of(claim, s, policy));
  }
  return out;
}

Outcome evaluate(const Claim& claim, const Setting& s, const Predictions& predictions) {
  switch (claim.kind) {
    case Kind::speed_up:
    case Kind::latency_reduction:
      return compare(claim, s, predictions);
    case Kind::latency:
      return compare_latency(claim, s, predictions);
    case Kind::gemm_time_share:
      return gemm_share(claim, s, predictions);
    case Kind::fits_in_memory:
      return fit(claim, s, predictions);
    case Kind::cost:
      return cost(claim, s, predictions);
    case Kind::other:
      break;
  }
  FUSELINE_ASSERT(false, claim.id);
}

}  // namespace fuseline::audit
