// One product whose columns lie head by head, Q, K and V of each behind each other (GPT-NeoX,
// BLOOM): chunk(view(x wᵀ, H, 3 d), 3). Each part becomes a product of its own with its rows of the
// weight, in the order of the heads; attention joins them again.
#include <fmt/format.h>

#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_parts_of_heads {
namespace {

constexpr std::int64_t kParts = 3;
constexpr const char* kNames[kParts] = {"first", "second", "third"};

// Heads that lie `step` columns apart, of which the view takes `width`.
struct Apart {
  std::int64_t heads = 0, step = 0, width = 0;
};

std::optional<Apart> apart(const TensorView& view) {
  std::vector<Walk> columns;
  for (const Dimension& dim : view.dims)
    for (const Walk& walk : dim)
      if (walk.axis == MatrixAxis::column)
        columns.push_back(walk);
      else if (walk.axis != MatrixAxis::row)
        return std::nullopt;
  if (columns.size() != 2 || columns[1].stride != 1 ||
      columns[0].stride != kParts * columns[1].size)
    return std::nullopt;
  return Apart{columns[0].size, columns[0].stride, columns[1].size};
}

// A weight or a bias of the part: as long as the part of the product.
MatrixColumns part_of(Draft& draft, const MatrixColumns& whole, std::int64_t part,
                      std::int64_t length, bool is_vector) {
  DraftMatrix m = draft.matrices[whole.matrix];
  (is_vector ? m.columns : m.rows) = length;
  m.name = fmt::format("{} ({} rows of each head)", m.name, kNames[part]);
  return draft.all_of(draft.add(std::move(m)));
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t part) {
  const auto taken = patterns::views.match(t, at, part);
  const auto found = taken ? apart(*taken) : std::nullopt;
  if (!found) return std::nullopt;
  Draft& draft = t.draft();
  const DraftMatrix all = draft.matrices[taken->matrix];
  const std::int64_t place = taken->first_column / found->width;
  if (!all.made_by || found->heads * found->step != all.columns || place >= kParts ||
      taken->first_column % found->width != 0)
    return std::nullopt;
  DraftStep product = draft.steps[*all.made_by];
  if (product.call != "linear") return std::nullopt;
  const std::int64_t length = found->heads * found->width;
  for (std::size_t read = 1; read < product.reads.size(); ++read)
    product.reads[read] = part_of(draft, product.reads[read], place, length, read > 1);
  const std::size_t result = draft.add(DraftMatrix{.rows = all.rows, .columns = length});
  product.writes = {result};
  draft.add(std::move(product));
  TensorView y = *taken;
  y.matrix = result;
  y.first_column = 0;
  for (Dimension& dim : y.dims)
    for (Walk& walk : dim)
      if (walk.axis == MatrixAxis::column && walk.stride == found->step) walk.stride = found->width;
  return y;
}

constexpr const char* kCalls[] = {"aten.chunk", "aten.split", "aten.split_with_sizes",
                                  "aten.unbind", "aten.select"};

}  // namespace
}  // namespace in_parts_of_heads

constinit const ImportPattern patterns::parts_of_heads{
    .calls = in_parts_of_heads::kCalls, .size = 1, .match = in_parts_of_heads::match};

}  // namespace fuseline
