// RMSNorm as one call, or as models write it: weight * (x * rsqrt(mean(x²) + eps)), computed in
// float32. Gemma's weight is 1 + w.
#include "model/import/all_patterns.h"
#include "model/import/norms.h"

namespace fuseline {

namespace in_rms_norm {
namespace {

struct Weight {
  MatrixColumns range;
  bool above_one = false;
};

std::optional<Weight> weight_of(Translator& t, std::size_t at) {
  if (const auto vector = t.vector(at)) return Weight{*vector, false};
  if (!t.is_call(at, "aten.add")) return std::nullopt;
  const auto sum = t.scaled(at);
  if (!sum || sum->second != 1) return std::nullopt;
  const auto vector = t.vector(sum->first);
  return vector ? std::optional(Weight{*vector, true}) : std::nullopt;
}

// The tensor whose squares' mean, plus eps, has its inverse root here.
struct InverseRoot {
  std::size_t of = 0;
  double eps = 0;
};

std::optional<InverseRoot> inverse_root(Translator& t, std::size_t at) {
  if (!t.is_call(at, "aten.rsqrt")) return std::nullopt;
  const auto sum = t.tensor(at, 0, "self");
  if (!sum || !t.is_call(*sum, "aten.add")) return std::nullopt;
  const auto with_eps = t.scaled(*sum);
  if (!with_eps || !t.is_call(with_eps->first, "aten.mean")) return std::nullopt;
  const std::size_t mean = with_eps->first;
  const auto squares = t.tensor(mean, 0, "self");
  const auto dims = t.wholes(mean, 1, "dim");
  if (!squares || dims.size() != 1) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(t.node(*squares).shape.size());
  if (dims[0] != -1 && dims[0] != rank - 1) return std::nullopt;
  if (t.is_call(*squares, "aten.pow")) {
    const auto x = t.tensor(*squares, 0, "self");
    if (x && t.number(*squares, 1, "exponent") == 2.0) return InverseRoot{*x, with_eps->second};
  }
  if (t.is_call(*squares, "aten.square")) {
    const auto x = t.tensor(*squares, 0, "self");
    if (x) return InverseRoot{*x, with_eps->second};
  }
  if (t.is_call(*squares, "aten.mul")) {
    const auto x = t.both(*squares);
    if (x && x->first == x->second) return InverseRoot{x->first, with_eps->second};
  }
  return std::nullopt;
}

std::optional<TensorView> normed(Translator& t, std::size_t product, std::size_t w) {
  const auto weight = weight_of(t, w);
  if (!weight || !t.is_call(product, "aten.mul")) return std::nullopt;
  const auto factors = t.both(product);
  if (!factors) return std::nullopt;
  for (const auto& [x, root] : {*factors, std::pair(factors->second, factors->first)}) {
    const auto inverse = inverse_root(t, root);
    if (!inverse || inverse->of != x) continue;
    auto view = norm_step(t, x, "rms_norm", "head_norm", {weight->range}, inverse->eps);
    if (view && weight->above_one)
      t.draft().steps.back().remarks.emplace_back(
          "Weights of norms that the module adds 1 to are the sums in the block");
    return view;
  }
  return std::nullopt;
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  if (t.is_call(at, "aten.rms_norm")) {
    const auto x = t.tensor(at, 0, "input");
    const auto w = t.tensor(at, 2, "weight");
    const auto weight = w ? weight_of(t, *w) : std::nullopt;
    constexpr double kSmallestStep = 1.1920929e-07;  // of float32, where the call has no eps
    if (!x || !weight || t.wholes(at, 1, "normalized_shape").size() != 1) return std::nullopt;
    return norm_step(t, *x, "rms_norm", "head_norm", {weight->range},
                     t.number(at, 3, "eps").value_or(kSmallestStep));
  }
  const auto factors = t.both(at);
  if (!factors) return std::nullopt;
  if (auto view = normed(t, factors->first, factors->second)) return view;
  return normed(t, factors->second, factors->first);
}

constexpr const char* kCalls[] = {"aten.mul", "aten.rms_norm"};
constexpr const char* kWithin[] = {"aten.pow", "aten.square", "aten.mean", "aten.rsqrt"};

}  // namespace
}  // namespace in_rms_norm

constinit const ImportPattern patterns::rms_norm{.calls = in_rms_norm::kCalls,
                                                 .within = in_rms_norm::kWithin,
                                                 .size = 6,
                                                 .match = in_rms_norm::match};

}  // namespace fuseline
