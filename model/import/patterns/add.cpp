// Sums: branches added to the stream that they left, and a vector added to every row.
#include <algorithm>

#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_add {
namespace {

// A layer sums a stream and its branches; each sum of a long chain would open all before it.
constexpr std::size_t kMostTerms = 8;

// The terms of sums within sums, in order. A sum that someone else reads too is a term itself.
std::vector<std::size_t> terms_of(Translator& t, std::size_t at) {
  std::vector<std::size_t> terms, left{at};
  while (!left.empty()) {
    const std::size_t sum = left.back();
    left.pop_back();
    const bool opened = sum == at || (t.is_call(sum, "aten.add") && t.readers(sum) == 1 &&
                                      terms.size() + left.size() + 2 <= kMostTerms);
    const auto both = opened ? t.both(sum) : std::nullopt;
    if (both && t.number(sum, 2, "alpha").value_or(1) == 1) {
      left.push_back(both->second);
      left.push_back(both->first);
    } else {
      terms.push_back(sum);
    }
  }
  return terms;
}

std::optional<TensorView> with_vector(Translator& t, std::size_t at) {
  const auto both = t.both(at);
  for (const auto& [x, v] : {*both, std::pair(both->second, both->first)}) {
    const auto vector = t.vector(v);
    if (!vector || !t.view(x)) continue;
    const auto range = in_order(*t.view(x), t.rows_of(*t.view(x)));
    if (!range || range->count != vector->count) return std::nullopt;
    DraftStep step{.call = "+"};
    step.name = {.site = "bias", .result = "s", .counted = true};
    step.equal = {{*range, *vector}};
    auto view = t.pointwise(std::move(step), {x});
    if (view) t.draft().steps.back().reads.push_back(*vector);
    return view;
  }
  return std::nullopt;
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  if (!t.both(at) || t.number(at, 2, "alpha").value_or(1) != 1) return std::nullopt;
  if (auto view = with_vector(t, at)) return view;
  std::vector<std::size_t> terms = terms_of(t, at);
  std::vector<MatrixColumns> ranges;
  std::optional<TensorView> dims;
  for (const std::size_t term : terms) {
    const auto& view = t.view(term);
    if (!view) return std::nullopt;
    const auto range = in_any_order(*view, t.rows_of(*view));
    if (!range) return std::nullopt;
    if (!dims) dims = view;
    ranges.push_back(*range);
  }
  // The stream is what all other terms follow from.
  std::size_t stream = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const bool of_all = std::all_of(ranges.begin(), ranges.end(), [&](const MatrixColumns& range) {
      return t.draft().follows(range, ranges[i]);
    });
    if (of_all) stream = i;
  }
  const bool reordered = terms.size() > 2;
  std::rotate(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(stream),
              terms.begin() + static_cast<std::ptrdiff_t>(stream) + 1);
  // Branches stand in the order in which the module computes them, not in that of its sum.
  const auto place = [&](std::size_t term) {
    return t.draft().matrices[t.view(term)->matrix].made_by.value_or(t.draft().steps.size());
  };
  std::stable_sort(terms.begin() + 1, terms.end(),
                   [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  std::optional<TensorView> sum = t.view(terms.front());
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const TensorView branch = *t.view(terms[i]);
    const auto a = in_any_order(*sum, t.rows_of(*sum));
    const auto b = in_any_order(branch, t.rows_of(branch));
    if (!a || !b || sum->dims != branch.dims || t.rows_of(*sum) != t.rows_of(branch))
      return std::nullopt;
    DraftStep step{.call = "+", .reads = {*a, *b}};
    step.name = {.site = "residual", .result = "h", .counted = true};
    if (reordered && i == 1)
      step.remarks.emplace_back(
          "A sum of several tensors is written as branches added to the stream one after the "
          "other");
    const std::size_t result =
        t.draft().add(DraftMatrix{.rows = t.rows_of(*sum), .columns = a->count});
    step.equal = {{*a, t.draft().all_of(result)}, {*b, t.draft().all_of(result)}};
    step.writes = {result};
    t.draft().add(std::move(step));
    sum = same_dimensions(*sum, result);
  }
  return sum;
}

constexpr const char* kCalls[] = {"aten.add"};

}  // namespace
}  // namespace in_add

constinit const ImportPattern patterns::add{.calls = in_add::kCalls, .match = in_add::match};

}  // namespace fuseline
