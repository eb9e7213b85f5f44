#include "sim/judge/audit/setting.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "model/activation_formats/stored_activation.h"
#include "model/policy.h"

namespace fuseline::audit {

namespace {

bool trains(const std::string& policy) {
  const std::vector<PolicyInfo> all = policies();
  return std::any_of(all.begin(), all.end(),
                     [&](const PolicyInfo& p) { return p.name == policy && p.trains; });
}

std::vector<Formats> formats_of(const Choices& c) {
  std::vector<Formats> out;
  for (const StoredWeight& weights : c.weights) {
    for (const StoredWeight& activations : c.activations) {
      if (activations.quantised() && weights_for(activations) != weights.name()) continue;
      for (const StoredCache& cache : c.caches)
        out.push_back({.weights = weights, .cache = cache, .activations = activations});
    }
  }
  return out;
}

std::vector<Workload> workloads(const Choices& c) {
  std::vector<Workload> out;
  for (const Phase phase : c.phases) {
    const bool decode = phase == Phase::decode;
    for (const std::int64_t batch : c.batches) {
      for (const std::int64_t tokens : decode ? c.contexts : c.seqs) {
        if (!decode && batch > 1 && batch * tokens > kMostTokens) continue;
        for (const Dtype dtype : c.dtypes) {
          for (const Formats& formats : formats_of(c)) {
            const bool codes = formats.weights.quantised() || formats.cache.quantised();
            if (phase == Phase::train && codes) continue;
            out.push_back({.phase = phase,
                           .batch = batch,
                           .seq = decode ? 1 : tokens,
                           .context = decode ? tokens : 0,
                           .dtype = dtype,
                           .formats = formats});
          }
        }
      }
    }
  }
  return out;
}

bool possible(const Setting& s) {
  if (s.workload.phase == Phase::train) {
    for (const std::string& policy : {s.baseline, s.policy}) {
      if (!policy.empty() && !trains(policy)) return false;
    }
  }
  return s.baseline.empty() || s.baseline != s.policy;
}

const std::vector<std::string> kNone = {""};

template <class Format>
bool any_quantised(const std::vector<Format>& formats) {
  return std::ranges::any_of(formats, [](const Format& f) { return f.quantised(); });
}
bool has_formats(const Claim& claim) { return any_quantised(claim.choices.weights); }
bool has_cache_formats(const Claim& claim) { return any_quantised(claim.choices.caches); }
bool has_coded_activations(const Claim& c) { return any_quantised(c.choices.activations); }

// Bandwidths depend on the GPU alone.
std::vector<Setting> levels_of(const Choices& c) {
  std::vector<Setting> out;
  for (const std::string& gpu : c.gpus) {
    for (const std::string& level : c.levels) {
      Setting s;
      s.gpu = gpu;
      s.level = level;
      out.push_back(std::move(s));
    }
  }
  return out;
}

}  // namespace

bool compares(Kind kind) {
  return kind == Kind::speed_up || kind == Kind::latency_reduction || kind == Kind::latency;
}

std::vector<Setting> settings_of(const Claim& claim) {
  std::vector<Setting> out;
  if (claim.kind == Kind::other) return out;
  const Choices& c = claim.choices;
  if (claim.kind == Kind::bandwidth_ratio) return levels_of(c);
  const bool with_baseline =
      compares(claim.kind) || claim.kind == Kind::gemm_time_share ||
      claim.kind == Kind::compute_bound ||
      (claim.kind == Kind::fits_in_memory && !claim.choices.baselines.empty());
  const auto& baselines = with_baseline ? c.baselines : kNone;
  const auto& claimed = claim.kind == Kind::gemm_time_share ? kNone : c.policies;
  const std::vector<std::int64_t> full = {16};
  const auto& bits = claim.kind == Kind::fits_in_memory ? c.weight_bits : full;
  const std::vector<double> free = {0};
  const auto& prices = claim.kind == Kind::cost ? c.prices : free;
  for (const std::string& model : c.models) {
    for (const std::string& gpu : c.gpus) {
      for (const Workload& workload : workloads(c)) {
        for (const std::string& baseline : baselines) {
          for (const std::string& policy : claimed) {
            for (const std::int64_t b : bits) {
              for (const double price : prices) {
                Setting s{model, gpu, workload, baseline, policy, b, price, {}};
                if (!possible(s)) continue;
                out.push_back(std::move(s));
                if (out.size() <= kMostSettings) continue;
                throw InputError(
                    {.file = claim.file,
                     .message = "the choices make too many settings",
                     .allowed = fmt::format("at most {} combinations", kMostSettings)});
              }
            }
          }
        }
      }
    }
  }
  if (out.empty()) {
    throw InputError({.file = claim.file,
                      .field = "setting",
                      .message = "no combination of the choices can be tried",
                      .allowed = fmt::format(
                          "at most {} tokens in a batch of more than one sequence, a baseline "
                          "other than the policy, policies with a plan for the phase",
                          kMostTokens)});
  }
  return out;
}

std::vector<Dimension> dimensions(const Claim& claim, const Setting& s) {
  const auto number = [](const char* name, auto value) {
    return Dimension{name, fmt::format("{}", value), static_cast<double>(value), true};
  };
  if (claim.kind == Kind::bandwidth_ratio) return {{"GPU", s.gpu}, {"level", s.level}};
  std::vector<Dimension> out = {{"model", s.model}, {"GPU", s.gpu}};
  if (!s.baseline.empty()) out.push_back({"baseline", s.baseline});
  if (!s.policy.empty()) out.push_back({"policy", s.policy});
  out.push_back({"phase", name_of(s.workload.phase)});
  out.push_back(number("batch", s.workload.batch));
  out.push_back(number("tokens", s.workload.kv_tokens()));
  out.push_back({"dtype", name_of(s.workload.dtype)});
  if (has_formats(claim)) out.push_back({"weights", weights_text(s.workload)});
  if (has_coded_activations(claim)) out.push_back({"activations", activations_text(s.workload)});
  if (has_cache_formats(claim)) out.push_back({"kv", cache_text(s.workload)});
  // Of a number format the bits follow.
  if (claim.kind == Kind::fits_in_memory && !has_formats(claim))
    out.push_back(number("bits per weight", s.weight_bits));
  if (claim.kind == Kind::cost) out.push_back(number("price an hour", s.price));
  return out;
}

std::string describe(const Claim& claim, const Setting& s) {
  if (claim.kind == Kind::bandwidth_ratio) return s.level + " of " + s.gpu;
  std::string text = s.model + " on " + s.gpu;
  if (!s.baseline.empty()) text += ", " + s.baseline;
  if (!s.policy.empty()) text += (s.baseline.empty() ? ", " : " to ") + s.policy;
  const Workload& w = s.workload;
  text +=
      fmt::format(", {}, batch {}, {} tokens", name_of(w.phase), w.batch, grouped(w.kv_tokens()));
  if (w.dtype != Dtype::bf16) text += fmt::format(", {}", name_of(w.dtype));
  if (has_formats(claim)) text += ", weights " + weights_text(w);
  if (has_coded_activations(claim)) text += ", activations " + activations_text(w);
  if (has_cache_formats(claim)) text += ", cache " + cache_text(w);
  if (claim.kind == Kind::fits_in_memory && !w.formats.weights.quantised())
    text += fmt::format(", {} bits per weight", s.weight_bits);
  if (claim.kind == Kind::cost) text += fmt::format(", {:g} an hour", s.price);
  return text;
}

}  // namespace fuseline::audit
