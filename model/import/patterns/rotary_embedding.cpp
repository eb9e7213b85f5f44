// RoPE of whole heads, or of their first columns with the others behind them again.
#include "model/import/all_patterns.h"
#include "model/import/rotation.h"

namespace fuseline {

namespace in_rotary_embedding {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  if (const auto found = rotation_at(t, at))
    return rotation_step(t, *found, found->of, found->width);
  // cat([rotated, rest]): the view of both together has a longer last dimension.
  if (!t.is_call(at, "aten.cat")) return std::nullopt;
  const std::vector<std::size_t> parts = t.tensors(at, 0, "tensors");
  const auto rank = static_cast<std::int64_t>(t.node(at).shape.size());
  const std::int64_t dim = t.whole_or(at, 1, "dim", 0);
  if (parts.size() != 2 || (dim != -1 && dim != rank - 1)) return std::nullopt;
  const auto found = rotation_at(t, parts[0]);
  const auto& rest = t.view(parts[1]);
  if (!found || !rest || found->of.dims.back().size() != 1) return std::nullopt;
  TensorView whole = found->of;
  const std::int64_t d = found->width + sizes_of(*rest).back();
  whole.dims.back().front().size = d;
  if (sliced(whole, rank - 1, 0, found->width, 1) != found->of ||
      sliced(whole, rank - 1, found->width, d, 1) != rest)
    return std::nullopt;
  return rotation_step(t, *found, whole, d);
}

constexpr const char* kCalls[] = {"aten.add", "aten.cat"};
constexpr const char* kWithin[] = {"aten.neg", "aten.stack", "aten.cos", "aten.sin"};

}  // namespace
}  // namespace in_rotary_embedding

constinit const ImportPattern patterns::rotary_embedding{.calls = in_rotary_embedding::kCalls,
                                                         .within = in_rotary_embedding::kWithin,
                                                         .size = 5,
                                                         .match = in_rotary_embedding::match};

}  // namespace fuseline
