#include "sim/judge/audit/findings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "sim/memory/memory_fit.h"

namespace fuseline::audit {

namespace {

// A GPU whose bandwidth is this near is taken for the one meant.
constexpr double kSameBandwidth = 0.10;

std::string saved_bytes(const Figure& f) {
  const double before = f.before.value() * *f.utilisation_before;
  const double after = f.after.value() * *f.utilisation_after;
  return fmt::format(
      "on one GPU, {:.0f} % for {:.1f} ms and {:.0f} % for {:.1f} ms mean that {:.0f} % of "
      "the bytes were saved",
      100 * *f.utilisation_before, f.before.value() * 1e3, 100 * *f.utilisation_after,
      f.after.value() * 1e3, 100 * (1 - after / before));
}

// The setting with the fewest compulsory bytes stands for the others.
std::string implied_bandwidth(const Claim& claim, const std::vector<Tried>& tried,
                              const Predictions& predictions) {
  const Figure& f = claim.figure;
  Bytes bytes(INT64_MAX);
  const Setting* setting = nullptr;
  for (const Tried& t : tried) {
    const Bytes b =
        predictions.ceilings(t.setting.model, t.setting.gpu, t.setting.workload).model_bytes;
    if (b >= bytes) continue;
    bytes = b;
    setting = &t.setting;
  }
  const double moved = bytes.as_double() / f.after.value();
  const double peak = moved / f.utilisation_after.value_or(1);
  std::string nearest;
  double distance = 1e300;
  std::vector<std::string> same;
  for (const std::string& name : claim.choices.gpus) {
    const double rate = predictions.gpu(name).hbm_bandwidth.value();
    const double off = std::abs(std::log(rate / peak));
    if (std::abs(rate / peak - 1) <= kSameBandwidth) same.push_back(name);
    if (off < distance) {
      distance = off;
      nearest = fmt::format("{} with {:.0f} GB/s", name, rate / 1e9);
    }
  }
  return fmt::format(
      "the {:.2f} GB that {} must at least read ({} in the cache) in {:.1f} ms are {:.0f} GB/s: {} "
      "a GPU of {:.0f} GB/s; {}",
      bytes.as_double() / 1e9, setting->model,
      fmt::format("{} tokens", setting->workload.kv_tokens()), f.after.value() * 1e3, moved / 1e9,
      f.utilisation_after ? fmt::format("at {:.0f} %", 100 * *f.utilisation_after) : "at least",
      peak / 1e9,
      same.empty() ? "none of those tried has that, the nearest is the " + nearest
                   : fmt::format("those tried that have: {}", fmt::join(same, ", ")));
}

// Predictions take launches from a CUDA graph; a CPU that launches kernel by kernel can be the
// baseline's real limit.
std::vector<std::string> of_launches(const Claim& claim, const std::vector<Tried>& tried) {
  const auto supported = [](const Tried& t) { return t.outcome.reached || t.outcome.bolder; };
  if (std::all_of(tried.begin(), tried.end(), supported)) return {};
  const Tried* best = nullptr;
  Seconds least;
  for (const Tried& t : tried) {
    if (t.outcome.launches_before == 0) continue;
    const Seconds each = t.outcome.after * supporting_speed_ups(claim).least /
                         static_cast<double>(t.outcome.launches_before);
    if (best != nullptr && each >= least) continue;
    least = each;
    best = &t;
  }
  if (best == nullptr) return {};
  return {fmt::format(
      "launched by the CPU instead of a CUDA graph, a baseline reaches it where each of its {} "
      "launches a block takes {} us ({})",
      best->outcome.launches_before, in_microseconds(least), describe(claim, best->setting))};
}

std::string predicted_latencies(const std::vector<Tried>& tried) {
  const auto range = [&](Seconds Outcome::*time) {
    const auto [least, most] = std::minmax_element(
        tried.begin(), tried.end(),
        [time](const Tried& a, const Tried& b) { return a.outcome.*time < b.outcome.*time; });
    return fmt::format("{:.1f} ms on {} to {:.1f} ms on {}", (least->outcome.*time).value() * 1e3,
                       least->setting.gpu, (most->outcome.*time).value() * 1e3, most->setting.gpu);
  };
  return fmt::format("predicted before: {}; after: {}", range(&Outcome::before),
                     range(&Outcome::after));
}

std::vector<std::string> of_cost(const Claim& claim, const std::vector<Tried>& tried) {
  std::vector<std::string> out;
  for (const std::string& gpu : claim.choices.gpus) {
    const Tried* best = nullptr;
    double cheapest = 1e300;
    for (const Tried& t : tried) {
      const double per_price = t.outcome.predicted / t.setting.price;
      if (t.setting.gpu != gpu || per_price >= cheapest) continue;
      cheapest = per_price;
      best = &t;
    }
    if (best == nullptr) continue;
    const Workload& w = best->setting.workload;
    out.push_back(
        fmt::format("{}: {} a million {} tokens needs a price of at most {:.2f} an hour where it "
                    "is cheapest (batch {}, "
                    "{} tokens); the limits allow it at {:.2f}",
                    gpu, amount_text(claim, claim.figure.cost.value()), tokens_paid_for(w.phase),
                    claim.figure.cost.value() / cheapest, w.batch, w.kv_tokens(),
                    claim.figure.cost.value() * best->setting.price / best->outcome.limit));
    if (best->outcome.gpus > 1) {
      out.push_back(fmt::format(
          "{}: the model needs the memory of {} such GPUs there; the cost is that of a perfect "
          "division of work, memory and time among them",
          gpu, best->outcome.gpus));
    }
  }
  return out;
}

std::vector<std::string> of_memory(const Claim& claim, const Predictions& predictions) {
  std::vector<std::string> out;
  for (const std::string& model : claim.choices.models) {
    std::vector<std::string> sizes;
    const double parameters = static_cast<double>(parameter_count(predictions.model(model)));
    for (const std::int64_t bits : claim.choices.weight_bits) {
      sizes.push_back(
          fmt::format("{:.1f} GB at {} bits", parameters * static_cast<double>(bits) / 8e9, bits));
    }
    for (const StoredWeight& weights : claim.choices.weights) {
      if (!weights.quantised()) continue;
      const Workload w{.formats = {.weights = weights}};
      sizes.push_back(fmt::format("{:.1f} GB in {} with embeddings in bf16",
                                  weight_bytes(predictions.model(model), w).as_double() / 1e9,
                                  weights.name()));
    }
    out.push_back(fmt::format("weights of {}: {}", model, fmt::join(sizes, ", ")));
  }
  std::vector<std::string> memories;
  for (const std::string& gpu : claim.choices.gpus) {
    const Bytes capacity = predictions.gpu(gpu).hbm_capacity;
    memories.push_back(fmt::format("{} {:.1f} GB ({:.0f} GiB)", gpu, capacity.as_double() / 1e9,
                                   capacity.as_double() / (1 << 30)));
  }
  out.push_back(fmt::format("memory: {}; fusing saves activations, never weights",
                            fmt::join(memories, ", ")));
  return out;
}

}  // namespace

std::vector<std::string> findings(const Claim& claim, const std::vector<Tried>& tried,
                                  const Predictions& predictions) {
  if (tried.empty()) return {};
  switch (claim.kind) {
    case Kind::latency: {
      std::vector<std::string> out = {predicted_latencies(tried)};
      const Figure& f = claim.figure;
      if (f.utilisation_before && f.utilisation_after) out.push_back(saved_bytes(f));
      out.push_back(implied_bandwidth(claim, tried, predictions));
      return out;
    }
    case Kind::speed_up:
    case Kind::latency_reduction:
      return of_launches(claim, tried);
    case Kind::cost:
      return of_cost(claim, tried);
    case Kind::fits_in_memory:
      return of_memory(claim, predictions);
    default:
      return {};
  }
}

}  // namespace fuseline::audit
