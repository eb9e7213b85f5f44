#include "model/import/activation.h"

#include <cmath>

namespace fuseline {

namespace {

bool is_near(double a, double b) { return std::abs(a - b) < 1e-4 * std::abs(b); }

// x * sigmoid(x)
std::optional<std::size_t> silu_of(Translator& t, std::size_t at) {
  const auto factors = t.both(at);
  if (!factors) return std::nullopt;
  for (const auto& [x, gate] : {*factors, std::pair(factors->second, factors->first)})
    if (t.is_call(gate, "aten.sigmoid") && t.tensor(gate, 0, "self") == x) return x;
  return std::nullopt;
}

// Of `factor` times a tensor, the tensor.
std::optional<std::size_t> times(Translator& t, std::size_t at, double factor) {
  if (!t.is_call(at, "aten.mul")) return std::nullopt;
  const auto scaled = t.scaled(at);
  if (!scaled.has_value() || !is_near(scaled->second, factor)) return std::nullopt;
  return scaled->first;
}

// x + 0.044715 x³
std::optional<std::size_t> cubic_of(Translator& t, std::size_t at) {
  const auto terms = t.is_call(at, "aten.add") ? t.both(at) : std::nullopt;
  if (!terms) return std::nullopt;
  for (const auto& [x, rest] : {*terms, std::pair(terms->second, terms->first)}) {
    const auto cube = times(t, rest, 0.044715);
    if (cube && t.is_call(*cube, "aten.pow") && t.number(*cube, 1, "exponent") == 3.0 &&
        t.tensor(*cube, 0, "self") == x)
      return x;
  }
  return std::nullopt;
}

// 1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)): the x.
std::optional<std::size_t> gate_of_gelu(Translator& t, std::size_t at) {
  constexpr double kRoot = 0.7978845608028654;  // sqrt(2 / pi)
  if (!t.is_call(at, "aten.add")) return std::nullopt;
  const auto above = t.scaled(at);
  if (!above.has_value() || above->second != 1 || !t.is_call(above->first, "aten.tanh"))
    return std::nullopt;
  const auto inner = t.tensor(above->first, 0, "self");
  const auto cubic = inner ? times(t, *inner, kRoot) : std::nullopt;
  return cubic ? cubic_of(t, *cubic) : std::nullopt;
}

// (0.5 x) times that gate.
std::optional<std::size_t> gelu_of(Translator& t, std::size_t at) {
  const auto factors = t.both(at);
  if (!factors) return std::nullopt;
  for (const auto& [half, gate] : {*factors, std::pair(factors->second, factors->first)}) {
    const auto x = times(t, half, 0.5);
    if (x && gate_of_gelu(t, gate) == x) return x;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundActivation> activation_at(Translator& t, std::size_t at) {
  const auto self = t.tensor(at, 0, "self");
  if (t.is_call(at, "aten.silu") && self) return FoundActivation{"silu", *self};
  if (t.is_call(at, "aten.relu") && self) return FoundActivation{"relu", *self};
  if (t.is_call(at, "aten.gelu") && self) {
    const SavedArgument* form = t.argument(at, 1, "approximate");
    const auto* word = form == nullptr ? nullptr : form->get<std::string>();
    return FoundActivation{word != nullptr && *word == "tanh" ? "gelu" : "gelu_erf", *self};
  }
  if (!t.is_call(at, "aten.mul")) return std::nullopt;
  if (const auto x = silu_of(t, at)) return FoundActivation{"silu", *x};
  if (const auto x = gelu_of(t, at)) return FoundActivation{"gelu", *x};
  return std::nullopt;
}

}  // namespace fuseline
