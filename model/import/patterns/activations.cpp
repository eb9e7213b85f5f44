// Activations of one tensor: as one call, or as models write them out.
#include <cmath>

#include "model/import/activation.h"
#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_activations {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto found = activation_at(t, at);
  if (!found) return std::nullopt;
  DraftStep step{.call = found->operation};
  // Both forms of GELU have one name in plans.
  const std::string op = found->operation;
  step.name = {.site = "act", .op = op == "gelu_erf" ? "gelu" : op, .result = "act"};
  step.behind = {{.site = "gateup", .op = "up", .result = "up"}};
  step.ahead = {{.site = "down", .result = "dn"}};
  return t.pointwise(std::move(step), {found->of});
}

constexpr const char* kCalls[] = {"aten.gelu", "aten.silu", "aten.relu", "aten.mul"};
constexpr const char* kWithin[] = {"aten.sigmoid", "aten.tanh", "aten.pow"};

}  // namespace
}  // namespace in_activations

constinit const ImportPattern patterns::activations{.calls = in_activations::kCalls,
                                                    .within = in_activations::kWithin,
                                                    .size = 4,
                                                    .match = in_activations::match};

}  // namespace fuseline
