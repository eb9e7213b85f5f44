// A tensor of a saved graph as a view of a matrix of the block: which rows and columns of the
// matrix each of its dimensions walks through. Views, transpositions and slices change the view and
// compute nothing.
//
//   x [M, H d]  --view(B, T, H, d)-->   row·T of B | row of T | column·d of H | column of d
//               --transpose(1, 2)-->    row·T of B | column·d of H | row of T | column of d
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fuseline {

enum class MatrixAxis : std::uint8_t {
  row,
  column,
  repeated,  // the same numbers again, as expand() gives them
};

// `size` steps along an axis, each `stride` rows or columns long.
struct Walk {
  MatrixAxis axis = MatrixAxis::row;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  friend bool operator==(const Walk&, const Walk&) = default;
};

// Outermost first. A dimension of one element has no walk.
using Dimension = std::vector<Walk>;

struct TensorView {
  std::size_t matrix = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
  std::vector<Dimension> dims{};
  friend bool operator==(const TensorView&, const TensorView&) = default;
};

// Columns behind each other of all rows of a matrix.
struct MatrixColumns {
  std::size_t matrix = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const MatrixColumns&, const MatrixColumns&) = default;
  friend auto operator<=>(const MatrixColumns&, const MatrixColumns&) = default;
};

// Of a whole matrix: its rows over all dimensions but the last, its columns over the last. The
// product of the sizes before the last must be the rows.
TensorView view_of_matrix(std::size_t matrix, const std::vector<std::int64_t>& shape);

std::vector<std::int64_t> sizes_of(const TensorView& view);

// Nothing: the elements are not those of dimensions behind each other.
std::optional<TensorView> reshaped(const TensorView& view, const std::vector<std::int64_t>& sizes);
std::optional<TensorView> permuted(const TensorView& view, const std::vector<std::int64_t>& order);
std::optional<TensorView> sliced(const TensorView& view, std::int64_t dim, std::int64_t begin,
                                 std::int64_t end, std::int64_t step);
std::optional<TensorView> expanded(const TensorView& view, const std::vector<std::int64_t>& sizes);

// The matrix as a product reads it: all rows in order, then columns behind each other.
std::optional<MatrixColumns> in_order(const TensorView& view, std::int64_t rows);
// The same elements in any order of dimensions: what an operator reads that looks at one element at
// a time. Dimensions keep their meaning for its result.
std::optional<MatrixColumns> in_any_order(const TensorView& view, std::int64_t rows);
// The result of such an operator: the same dimensions of another matrix, from its first column on.
TensorView same_dimensions(const TensorView& view, std::size_t matrix);

}  // namespace fuseline
