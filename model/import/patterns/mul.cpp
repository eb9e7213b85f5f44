// Products: of two tensors, of a tensor with a vector or with a number.
#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_mul {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  if (const auto scaled = t.scaled(at)) {
    const bool divides = t.is_call(at, "aten.div");
    if (divides && (scaled->second == 0 || !t.tensor(at, 0, "self"))) return std::nullopt;
    DraftStep step{.call = "scale"};
    step.name = {.site = "scale", .result = "scaled", .counted = true};
    step.values = {{"", divides ? 1 / scaled->second : scaled->second}};
    return t.pointwise(std::move(step), {scaled->first});
  }
  const auto factors = t.both(at);
  if (!factors || t.is_call(at, "aten.div")) return std::nullopt;
  DraftStep step{.call = "*"};
  step.name = {.site = "product", .result = "p", .counted = true};
  for (const auto& [x, v] : {*factors, std::pair(factors->second, factors->first)}) {
    const auto vector = t.vector(v);
    if (!vector || !t.view(x)) continue;
    const auto range = in_order(*t.view(x), t.rows_of(*t.view(x)));
    if (!range || range->count != vector->count) return std::nullopt;
    step.equal = {{*range, *vector}};
    auto view = t.pointwise(std::move(step), {x});
    if (view) t.draft().steps.back().reads.push_back(*vector);
    return view;
  }
  return t.pointwise(std::move(step), {factors->first, factors->second});
}

constexpr const char* kCalls[] = {"aten.mul", "aten.div"};

}  // namespace
}  // namespace in_mul

constinit const ImportPattern patterns::mul{.calls = in_mul::kCalls, .match = in_mul::match};

}  // namespace fuseline
