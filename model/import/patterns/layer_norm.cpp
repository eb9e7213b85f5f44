// LayerNorm, with weight and bias or with neither.
#include "model/import/all_patterns.h"
#include "model/import/norms.h"

namespace fuseline {

namespace in_layer_norm {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t part) {
  const auto x = t.tensor(at, 0, "input");
  const auto w = t.tensor(at, 2, "weight");
  const auto b = t.tensor(at, 3, "bias");
  if (!x || part != 0 || t.wholes(at, 1, "normalized_shape").size() != 1) return std::nullopt;
  const double eps = t.number(at, 4, "eps").value_or(1e-5);
  if (!w && !b) return norm_step(t, *x, "normalise", "", {}, eps);
  if (!w || !b) return std::nullopt;
  const auto weight = t.vector(*w);
  const auto bias = t.vector(*b);
  if (!weight || !bias) return std::nullopt;
  return norm_step(t, *x, "layer_norm", "", {*weight, *bias}, eps);
}

constexpr const char* kCalls[] = {"aten.layer_norm", "aten.native_layer_norm"};

}  // namespace
}  // namespace in_layer_norm

constinit const ImportPattern patterns::layer_norm{.calls = in_layer_norm::kCalls,
                                                   .match = in_layer_norm::match};

}  // namespace fuseline
