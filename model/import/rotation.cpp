#include "model/import/rotation.h"

#include <fmt/format.h>

#include <algorithm>

namespace fuseline {

namespace {

// What a table is a view of: an input or buffer, or the call of cos or sin that made it. Tables of
// half a head are repeated for its other half.
std::size_t table_behind(const Translator& t, std::size_t at) {
  constexpr std::string_view looks[] = {
      "aten.unsqueeze",    "aten.squeeze", "aten.expand",    "aten.view",
      "aten.reshape",      "aten.slice",   "aten.select",    "aten.repeat_interleave",
      "aten.index",        "aten.gather",  "aten.transpose", "aten.flatten",
      "aten.index_select", "aten.permute"};
  for (;;) {
    at = t.behind(at);
    if (std::none_of(std::begin(looks), std::end(looks),
                     [&](std::string_view call) { return t.is_call(at, call); }))
      return at;
    const auto read = t.tensor(at, 0, "self");
    if (!read) return at;
    at = *read;
  }
}

// Tables come in, or are made of positions. What a step of the block makes is none.
bool is_table(Translator& t, std::size_t at, std::int64_t width, std::int64_t tokens) {
  const SavedNode& n = t.node(at);
  if (!n.has_shape || n.shape.empty() || n.shape.back() != width) return false;
  for (std::size_t i = 0; i + 1 < n.shape.size(); ++i)
    if (n.shape[i] != 1 && n.shape[i] != tokens && n.shape[i] != t.draft().batch) return false;
  const std::size_t root = table_behind(t, at);
  const auto& view = t.view(root);
  if (!view) return t.node(root).kind != SavedKind::parameter;
  const DraftMatrix& matrix = t.draft().matrices[view->matrix];
  return matrix.kind == MatrixKind::input && matrix.name != "x";
}

std::optional<TensorView> part_of(const TensorView& x, std::int64_t begin, std::int64_t end,
                                  std::int64_t step) {
  return sliced(x, static_cast<std::int64_t>(x.dims.size()) - 1, begin, end, step);
}

// cat([-x2, x1]) of halves, or stack([-x2, x1]) of neighbours laid flat. The node of x2 and x1.
struct Turned {
  std::size_t second = 0;
  std::size_t first = 0;
  bool adjacent = false;
};

std::optional<Turned> turned_at(Translator& t, std::size_t at) {
  bool adjacent = false;
  if (t.is_call(at, "aten.flatten") || t.is_call(at, "aten.view") ||
      t.is_call(at, "aten.reshape")) {
    const auto inner = t.tensor(at, 0, "self");
    if (!inner || !t.is_call(*inner, "aten.stack")) return std::nullopt;
    at = *inner;
    adjacent = true;
  } else if (!t.is_call(at, "aten.cat")) {
    return std::nullopt;
  }
  const std::vector<std::size_t> parts = t.tensors(at, 0, "tensors");
  const auto rank = static_cast<std::int64_t>(t.node(at).shape.size());
  const std::int64_t dim = t.whole_or(at, 1, "dim", 0);
  if (parts.size() != 2 || !t.is_call(parts[0], "aten.neg") || (dim != -1 && dim != rank - 1))
    return std::nullopt;
  const auto negated = t.tensor(parts[0], 0, "self");
  if (!negated) return std::nullopt;
  return Turned{*negated, parts[1], adjacent};
}

}  // namespace

std::optional<FoundRotation> rotation_at(Translator& t, std::size_t at) {
  const auto terms = t.is_call(at, "aten.add") ? t.both(at) : std::nullopt;
  if (!terms) return std::nullopt;
  for (const auto& [straight, crossed] : {*terms, std::pair(terms->second, terms->first)}) {
    const auto a = t.is_call(straight, "aten.mul") ? t.both(straight) : std::nullopt;
    const auto b = t.is_call(crossed, "aten.mul") ? t.both(crossed) : std::nullopt;
    if (!a || !b) continue;
    for (const auto& [x, cos] : {*a, std::pair(a->second, a->first)}) {
      for (const auto& [other, sin] : {*b, std::pair(b->second, b->first)}) {
        const auto turned = turned_at(t, other);
        if (!turned || !t.view(x) || t.view(x)->dims.empty()) continue;
        const TensorView& view = *t.view(x);
        const std::int64_t width = sizes_of(view).back();
        const std::int64_t half = width / 2;
        const auto first =
            turned->adjacent ? part_of(view, 0, width, 2) : part_of(view, 0, half, 1);
        const auto second =
            turned->adjacent ? part_of(view, 1, width, 2) : part_of(view, half, width, 1);
        if (width % 2 != 0 || !first || !second || t.view(turned->first) != first ||
            t.view(turned->second) != second)
          continue;
        if (!is_table(t, cos, width, t.draft().tokens) ||
            !is_table(t, sin, width, t.draft().tokens))
          continue;
        return FoundRotation{.of = view,
                             .width = width,
                             .adjacent = turned->adjacent,
                             .cos = table_behind(t, cos),
                             .sin = table_behind(t, sin)};
      }
    }
  }
  return std::nullopt;
}

std::optional<TensorView> rotation_step(Translator& t, const FoundRotation& found,
                                        const TensorView& whole, std::int64_t d) {
  Draft& draft = t.draft();
  const auto range = in_any_order(whole, t.rows_of(whole));
  if (!range || t.rows_of(whole) != draft.rows()) return std::nullopt;
  const auto table = [&](std::size_t node, const char* name) {
    // The same table again is the same matrix.
    const std::string owner = fmt::format("{} {}", name, node);
    for (std::size_t i = 0; i < draft.matrices.size(); ++i)
      if (draft.matrices[i].kind == MatrixKind::table && draft.matrices[i].name == owner &&
          draft.matrices[i].columns == found.width)
        return i;
    return draft.add(DraftMatrix{
        .kind = MatrixKind::table, .rows = draft.tokens, .columns = found.width, .name = owner});
  };
  DraftStep step{.call = "rope", .reads = {*range}};
  step.name = {.site = "rope", .op = "rope", .result = "_rot"};
  step.hands_on = true;
  step.reads.push_back(draft.all_of(table(found.cos, "cos")));
  step.reads.push_back(draft.all_of(table(found.sin, "sin")));
  step.values.push_back({"d", Letter{"d", d}});
  if (found.adjacent) step.values.push_back({"adjacent", std::string("yes")});
  const Width turned{{found.width == d ? "d" : "rotated", found.width}};
  step.widths = {{step.reads[1], turned}, {step.reads[2], turned}};
  const std::size_t result =
      draft.add(DraftMatrix{.rows = t.rows_of(whole), .columns = range->count});
  step.equal = {{*range, draft.all_of(result)}};
  step.writes = {result};
  draft.add(std::move(step));
  return same_dimensions(whole, result);
}

}  // namespace fuseline
