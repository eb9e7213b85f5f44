// Gates divided by their sum: those of a softmax of the chosen experts' scores.
#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_normalised_gates {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto pair = t.both(at);
  if (!pair || !t.is_call(pair->second, "aten.sum")) return std::nullopt;
  const auto summed = t.tensor(pair->second, 0, "self");
  const std::vector<std::int64_t> dims = t.wholes(pair->second, 1, "dim");
  const auto& gates = t.view(pair->first);
  // Whoever else reads the gates would read them before the division.
  constexpr int kSumAndDivision = 2;
  if (!summed || *summed != pair->first || !gates || t.readers(pair->first) != kSumAndDivision ||
      dims != std::vector<std::int64_t>{-1})
    return std::nullopt;
  const auto made_by = t.draft().matrices[gates->matrix].made_by;
  if (!made_by) return std::nullopt;
  DraftStep& choice = t.draft().steps[*made_by];
  if (choice.call != "choose_experts" || choice.writes.front() != gates->matrix)
    return std::nullopt;
  choice.values.back().value = std::string("softmax");
  return gates;
}

constexpr const char* kCalls[] = {"aten.div"};
constexpr const char* kWithin[] = {"aten.sum"};

}  // namespace
}  // namespace in_normalised_gates

constinit const ImportPattern patterns::normalised_gates{.calls = in_normalised_gates::kCalls,
                                                         .within = in_normalised_gates::kWithin,
                                                         .size = 2,
                                                         .match = in_normalised_gates::match};

}  // namespace fuseline
