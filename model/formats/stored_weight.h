// A weight in a number format: which tensors stand beside it, and what its codes are worth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/dtype.h"

namespace fuseline {

struct WeightFormat;  // model/formats/weight_format.h

// What a number beside the codes is.
enum class ScaleKind : std::uint8_t { scale, zero_point, tensor_scale };

// Half-open ranges of a tensor's rows and columns.
struct ScaleRange {
  std::int64_t row_begin = 0, row_end = 0;
  std::int64_t col_begin = 0, col_end = 0;

  [[nodiscard]] std::int64_t elements() const {
    return (row_end - row_begin) * (col_end - col_begin);
  }
};

// A tensor beside a weight: "w_qkv_scale" beside "w_qkv".
struct ScaleTensor {
  ScaleKind kind = ScaleKind::scale;
  const char* suffix = "";
  Dtype type = Dtype::fp32;
  std::int64_t rows = 0, cols = 0;  // of one matrix [N, K]
};

// The format that is asked for, and how many columns share a scale in it.
struct StoredWeight {
  const WeightFormat* format = nullptr;  // null: weights are numbers of the workload's type
  std::int64_t group = 0;                // columns; 0: all of a row
  // Rows 2j and 2j + 1 were rows j of two halves, whose blocks of scales alternate as they do.
  bool pairs = false;

  [[nodiscard]] bool quantised() const { return format != nullptr; }
  // "int4", or "int4:64" where the group is not the format's own; "" without a format.
  [[nodiscard]] std::string name() const;
  // The type of the codes, and whether rows have several scales: then a mainloop applies them
  // before it multiplies; else they could wait for the epilogue.
  [[nodiscard]] Dtype element() const;
  [[nodiscard]] bool scaled_within_rows() const { return group > 0; }
  // Whether codes are multiplied as they are and sums of products by the scales: of whole rows, or
  // of as many columns as a step of the mainloop has (512 bits of a row). Else codes times scales
  // are rounded to the other operand's type ahead of the product.
  [[nodiscard]] bool scales_sums() const;
  // The tensors beside a matrix [N, K], in the order in which products read them.
  [[nodiscard]] std::vector<ScaleTensor> beside(std::int64_t N, std::int64_t K) const;
  // Which elements of such a tensor rows [n_begin, n_end) and columns [k_begin, k_end) of the
  // matrix bring along. Numbers that several ranges of columns share belong to the first of them,
  // so that the ranges of a split product add up to one product.
  [[nodiscard]] ScaleRange beside(ScaleKind kind, std::int64_t n_begin, std::int64_t n_end,
                                  std::int64_t k_begin, std::int64_t k_end) const;
  // Bytes of scales and zero points for each element of rows of K columns.
  [[nodiscard]] double scale_bytes_per_element(std::int64_t K) const;
  // The row of scales and of zero points that belongs to row n.
  [[nodiscard]] std::int64_t scale_row(std::int64_t n) const;

  friend bool operator==(const StoredWeight&, const StoredWeight&) = default;
};

// The numbers beside one row of codes: a scale and a zero point (or null) for each group.
template <class T>
struct RowScales {
  const T* scale = nullptr;
  const T* zero_point = nullptr;
  T tensor_scale = 1;
};

// codes[i] of columns k_begin + i becomes (code - zero point) × scale × tensor scale.
template <class T>
void dequantise(const StoredWeight& weight, const RowScales<T>& row, std::int64_t k_begin,
                std::int64_t count, T* codes) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t g = weight.group == 0 ? 0 : (k_begin + i) / weight.group;
    const T zero = row.zero_point == nullptr ? T(0) : row.zero_point[g];
    codes[i] = (codes[i] - zero) * (row.scale[g] * row.tensor_scale);
  }
}

// "int4", "int4:64", "int4:0" (a scale for a whole row), or the name of the workload's type for no
// format (`plain`: "bf16"). InputError with `field` otherwise: unknown (nearest name), a group that
// the format does not have.
StoredWeight parse_stored_weight(const std::string& text, const std::string& field,
                                 const std::string& plain);

// The names of all formats, in alphabetical order.
std::vector<std::string> weight_format_names();
const std::vector<const WeightFormat*>& all_weight_formats();

}  // namespace fuseline
