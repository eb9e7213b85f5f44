// masked_fill(rows, expert >= E, 0): rows of experts that another GPU has. One GPU has all E, and
// no row is such.
#include "model/import/all_patterns.h"
#include "model/import/experts.h"

namespace fuseline {

namespace in_rows_without_expert {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto rows = t.tensor(at, 0, "self");
  auto mask = t.tensor(at, 1, "mask");
  if (mask && t.is_call(*mask, "aten.unsqueeze")) mask = t.tensor(*mask, 0, "self");
  if (!rows || !mask || !t.is_call(*mask, "aten.ge")) return std::nullopt;
  const auto numbers = t.tensor(*mask, 0, "self");
  const auto least = t.number(*mask, 1, "other");
  if (!numbers || !least) return std::nullopt;
  const auto route = route_of_sorted(t, *numbers);
  if (!route || *least < static_cast<double>(route->experts.number)) return std::nullopt;
  return t.view(*rows);
}

constexpr const char* kCalls[] = {"aten.masked_fill"};
constexpr const char* kWithin[] = {"aten.ge"};

}  // namespace
}  // namespace in_rows_without_expert

constinit const ImportPattern patterns::rows_without_expert{
    .calls = in_rows_without_expert::kCalls,
    .within = in_rows_without_expert::kWithin,
    .size = 3,
    .match = in_rows_without_expert::match};

}  // namespace fuseline
