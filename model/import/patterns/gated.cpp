// SwiGLU and GeGLU: an activation of the gate, times up.
#include <map>
#include <string_view>

#include "model/import/activation.h"
#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_gated {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  static const std::map<std::string_view, const char*> gated = {{"silu", "swiglu"},
                                                                {"gelu", "geglu"}};
  const auto factors = t.both(at);
  if (!factors) return std::nullopt;
  for (const auto& [gate, up] : {*factors, std::pair(factors->second, factors->first)}) {
    const auto activation = activation_at(t, gate);
    if (!activation || !gated.contains(activation->operation)) continue;
    if (activation_at(t, at)) return std::nullopt;  // x * sigmoid(x) of an x that is a product
    const char* call = gated.at(activation->operation);
    DraftStep step{.call = call};
    step.name = {.site = "act", .op = call, .result = "act"};
    step.behind = {{.site = "gateup", .op = "gate", .result = "g"},
                   {.site = "gateup", .op = "up", .result = "u"}};
    step.ahead = {{.site = "down", .result = "dn"}};
    step.joint = {{.site = "gateup", .op = "gate_up", .result = "gu", .weight = "gate_up"}};
    step.apart = activation->operation;
    return t.pointwise(std::move(step), {activation->of, up});
  }
  return std::nullopt;
}

constexpr const char* kCalls[] = {"aten.mul"};

}  // namespace
}  // namespace in_gated

constinit const ImportPattern patterns::gated{
    .calls = in_gated::kCalls, .size = 5, .match = in_gated::match};

}  // namespace fuseline
