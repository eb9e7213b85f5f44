// Calls that only look at a tensor in another way.
#include <algorithm>
#include <numeric>

#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_views {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t in_range(std::int64_t dim, std::size_t rank) {
  return dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim;
}

// The numbers of pieces that split, chunk and split_with_sizes cut a dimension into.
Sizes pieces(Translator& t, std::size_t at, std::int64_t size) {
  Sizes out;
  if (t.is_call(at, "aten.chunk")) {
    const std::int64_t count = std::clamp(t.whole_or(at, 1, "chunks", 0), std::int64_t{1}, size);
    const std::int64_t each = (size + count - 1) / count;
    for (std::int64_t left = size; left > 0; left -= each) out.push_back(std::min(each, left));
    return out;
  }
  const char* name = t.is_call(at, "aten.split") ? "split_size" : "split_sizes";
  const SavedArgument* one = t.argument(at, 1, name);
  if (one != nullptr && one->get<std::int64_t>() != nullptr) {
    const std::int64_t each = std::clamp(*one->get<std::int64_t>(), std::int64_t{1}, size);
    for (std::int64_t left = size; left > 0; left -= each) out.push_back(std::min(each, left));
    return out;
  }
  out = t.wholes(at, 1, name);
  if (out.empty()) out = t.wholes(at, 1, "split_size");
  return out;
}

std::optional<TensorView> piece(Translator& t, std::size_t at, const TensorView& x,
                                std::int64_t part) {
  const std::int64_t dim = in_range(t.whole_or(at, 2, "dim", 0), x.dims.size());
  if (dim < 0 || dim >= static_cast<std::int64_t>(x.dims.size())) return std::nullopt;
  std::int64_t begin = 0;
  const Sizes all = pieces(t, at, sizes_of(x)[static_cast<std::size_t>(dim)]);
  if (part < 0 || part >= static_cast<std::int64_t>(all.size())) return std::nullopt;
  for (std::int64_t i = 0; i < part; ++i) {
    const std::int64_t width = all[static_cast<std::size_t>(i)];
    if (width < 0 || width > (std::int64_t{1} << 40)) return std::nullopt;
    begin += width;
  }
  return sliced(x, dim, begin, begin + all[static_cast<std::size_t>(part)], 1);
}

std::optional<TensorView> without_dimension(const std::optional<TensorView>& view,
                                            std::int64_t dim) {
  if (!view) return std::nullopt;
  TensorView out = *view;
  out.dims.erase(out.dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return out;
}

std::optional<TensorView> one_of(Translator& t, std::size_t at, const TensorView& x, bool is_part,
                                 std::int64_t part) {
  const std::int64_t dim = in_range(t.whole_or(at, 1, "dim", 0), x.dims.size());
  if (dim < 0 || dim >= static_cast<std::int64_t>(x.dims.size())) return std::nullopt;
  std::int64_t index = is_part ? part : t.whole_or(at, 2, "index", 0);
  if (index < 0) index += sizes_of(x)[static_cast<std::size_t>(dim)];
  return without_dimension(sliced(x, dim, index, index + 1, 1), dim);
}

std::optional<TensorView> swapped(const TensorView& x, std::int64_t a, std::int64_t b) {
  Sizes order(x.dims.size());
  std::iota(order.begin(), order.end(), 0);
  a = in_range(a, order.size());
  b = in_range(b, order.size());
  const auto rank = static_cast<std::int64_t>(order.size());
  if (a < 0 || b < 0 || a >= rank || b >= rank) return std::nullopt;
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return permuted(x, order);
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t part) {
  const auto read = t.tensor(at, 0, "self");
  if (!read || !t.view(*read)) return std::nullopt;
  const TensorView& x = *t.view(*read);
  if (t.is_call(at, "aten.split") || t.is_call(at, "aten.chunk") ||
      t.is_call(at, "aten.split_with_sizes"))
    return piece(t, at, x, part);
  if (t.is_call(at, "aten.unbind")) return one_of(t, at, x, true, part);
  if (t.is_call(at, "aten.select")) return one_of(t, at, x, false, 0);
  if (t.is_call(at, "aten.slice"))
    return sliced(x, t.whole_or(at, 1, "dim", 0), t.whole_or(at, 2, "start", 0),
                  t.whole_or(at, 3, "end", INT64_MAX), t.whole_or(at, 4, "step", 1));
  if (t.is_call(at, "aten.permute")) return permuted(x, t.wholes(at, 1, "dims"));
  if (t.is_call(at, "aten.transpose"))
    return swapped(x, t.whole_or(at, 1, "dim0", 0), t.whole_or(at, 2, "dim1", 0));
  if (t.is_call(at, "aten.t")) return x.dims.size() == 2 ? swapped(x, 0, 1) : std::nullopt;
  const Sizes& wanted = t.node(at).shape;
  if (t.is_call(at, "aten.expand")) return expanded(x, wanted);
  // What is left keeps the order of elements, and the node says the sizes.
  return reshaped(x, wanted);
}

constexpr const char* kCalls[] = {"aten.view",
                                  "aten.reshape",
                                  "aten._unsafe_view",
                                  "aten.flatten",
                                  "aten.unflatten",
                                  "aten.unsqueeze",
                                  "aten.squeeze",
                                  "aten.expand",
                                  "aten.transpose",
                                  "aten.permute",
                                  "aten.t",
                                  "aten.slice",
                                  "aten.select",
                                  "aten.split",
                                  "aten.chunk",
                                  "aten.split_with_sizes",
                                  "aten.unbind"};

}  // namespace
}  // namespace in_views

constinit const ImportPattern patterns::views{
    .calls = in_views::kCalls, .size = 0, .match = in_views::match};

}  // namespace fuseline
