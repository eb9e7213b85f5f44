#include "model/import/tensor_view.h"

#include <algorithm>
#include <numeric>

namespace fuseline {

namespace {

std::int64_t size_of(const Dimension& dim) {
  std::int64_t size = 1;
  for (const Walk& walk : dim) size *= walk.size;
  return size;
}

// Walks that continue each other are one: row·T of B, row of T is row of B T.
Dimension joined(const Dimension& dim) {
  Dimension out;
  for (const Walk& walk : dim) {
    if (walk.size == 1) continue;
    if (!out.empty() && out.back().axis == walk.axis && walk.axis != MatrixAxis::repeated &&
        out.back().stride == walk.size * walk.stride) {
      out.back() = {walk.axis, out.back().size * walk.size, walk.stride};
    } else {
      out.push_back(walk);
    }
  }
  return out;
}

Dimension all_walks(const TensorView& view) {
  Dimension all;
  for (const Dimension& dim : view.dims) all.insert(all.end(), dim.begin(), dim.end());
  return all;
}

// Rows, then columns: all of the rows, and columns without gaps.
std::optional<MatrixColumns> as_range(const TensorView& view, const Dimension& walks,
                                      std::int64_t rows) {
  if (view.first_row != 0) return std::nullopt;
  Dimension whole = joined(walks);
  if (rows > 1) {
    if (whole.empty() || whole.front() != Walk{MatrixAxis::row, rows, 1}) return std::nullopt;
    whole.erase(whole.begin());
  }
  if (whole.empty()) return MatrixColumns{view.matrix, view.first_column, 1};
  if (whole.size() != 1 || whole.front().axis != MatrixAxis::column || whole.front().stride != 1)
    return std::nullopt;
  return MatrixColumns{view.matrix, view.first_column, whole.front().size};
}

}  // namespace

TensorView view_of_matrix(std::size_t matrix, const std::vector<std::int64_t>& shape) {
  TensorView view{.matrix = matrix};
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const bool columns = i + 1 == shape.size();
    const MatrixAxis axis = columns ? MatrixAxis::column : MatrixAxis::row;
    view.dims.push_back(shape[i] == 1 ? Dimension{}
                                      : Dimension{{axis, shape[i], columns ? 1 : stride}});
    if (!columns) stride *= shape[i];
  }
  std::reverse(view.dims.begin(), view.dims.end());
  return view;
}

std::vector<std::int64_t> sizes_of(const TensorView& view) {
  std::vector<std::int64_t> sizes;
  for (const Dimension& dim : view.dims) sizes.push_back(size_of(dim));
  return sizes;
}

std::optional<TensorView> reshaped(const TensorView& view, const std::vector<std::int64_t>& sizes) {
  // Walks are taken from the front and cut where a dimension ends: column of H d becomes column·d
  // of H, and column of d stays for the next dimension.
  Dimension left = all_walks(view);
  std::reverse(left.begin(), left.end());
  TensorView out{view.matrix, view.first_row, view.first_column, {}};
  for (std::int64_t wanted : sizes) {
    Dimension dim;
    while (wanted > 1) {
      if (left.empty()) return std::nullopt;
      Walk& walk = left.back();
      if (wanted % walk.size == 0) {
        wanted /= walk.size;
        dim.push_back(walk);
        left.pop_back();
      } else if (walk.size % wanted == 0) {
        const std::int64_t inner = walk.size / wanted;
        dim.push_back({walk.axis, wanted, walk.stride * inner});
        walk.size = inner;
        wanted = 1;
      } else {
        return std::nullopt;
      }
    }
    out.dims.push_back(joined(dim));
  }
  if (!joined(left).empty()) return std::nullopt;
  return out;
}

std::optional<TensorView> permuted(const TensorView& view, const std::vector<std::int64_t>& order) {
  const auto rank = static_cast<std::int64_t>(view.dims.size());
  TensorView out{view.matrix, view.first_row, view.first_column, {}};
  std::vector<bool> used(view.dims.size(), false);
  if (static_cast<std::int64_t>(order.size()) != rank) return std::nullopt;
  for (std::int64_t dim : order) {
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank || used[static_cast<std::size_t>(dim)]) return std::nullopt;
    used[static_cast<std::size_t>(dim)] = true;
    out.dims.push_back(view.dims[static_cast<std::size_t>(dim)]);
  }
  return out;
}

std::optional<TensorView> sliced(const TensorView& view, std::int64_t dim, std::int64_t begin,
                                 std::int64_t end, std::int64_t step) {
  const auto rank = static_cast<std::int64_t>(view.dims.size());
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank || step < 1) return std::nullopt;
  TensorView out = view;
  Dimension& walks = out.dims[static_cast<std::size_t>(dim)];
  const std::int64_t size = size_of(walks);
  begin = std::clamp(begin < 0 ? begin + size : begin, std::int64_t{0}, size);
  end = std::clamp(end < 0 ? end + size : end, begin, size);
  if (begin == 0 && end == size && step == 1) return out;
  if (walks.size() != 1 || begin == end) return std::nullopt;
  Walk& walk = walks.front();
  if (walk.axis == MatrixAxis::row) out.first_row += begin * walk.stride;
  if (walk.axis == MatrixAxis::column) out.first_column += begin * walk.stride;
  walk.size = (end - begin - 1) / step + 1;
  walk.stride *= step;
  walks = joined(walks);
  return out;
}

// Dimensions of one element become as many as are asked for; further ones come before.
std::optional<TensorView> expanded(const TensorView& view, const std::vector<std::int64_t>& sizes) {
  if (sizes.size() < view.dims.size()) return std::nullopt;
  TensorView out{view.matrix, view.first_row, view.first_column, {}};
  const std::size_t before = sizes.size() - view.dims.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Dimension dim = i < before ? Dimension{} : view.dims[i - before];
    const std::int64_t size = size_of(dim);
    if (sizes[i] == size || sizes[i] == -1) {
      out.dims.push_back(dim);
    } else if (size == 1) {
      out.dims.push_back({{MatrixAxis::repeated, sizes[i], 0}});
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<MatrixColumns> in_order(const TensorView& view, std::int64_t rows) {
  return as_range(view, all_walks(view), rows);
}

std::optional<MatrixColumns> in_any_order(const TensorView& view, std::int64_t rows) {
  Dimension walks = all_walks(view);
  std::stable_sort(walks.begin(), walks.end(), [](const Walk& a, const Walk& b) {
    return a.axis != b.axis ? a.axis < b.axis : a.stride > b.stride;
  });
  return as_range(view, walks, rows);
}

TensorView same_dimensions(const TensorView& view, std::size_t matrix) {
  return {.matrix = matrix, .dims = view.dims};
}

}  // namespace fuseline
