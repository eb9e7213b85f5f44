// The numbers beside the operands of a product, for the reference.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/operators/operator_table.h"
#include "model/operators/support/view.h"

namespace fuseline::reference {

class WeightScales {
 public:
  WeightScales(const Graph& g, const TensorValues& in, const Op& op)
      : shape_(gemm_shape(op)), beside_(shape_.weight.beside(shape_.N, shape_.K)) {
    for (std::size_t i = 0; i < beside_.size(); ++i) views_.push_back(read(g, in, op.reads[2 + i]));
  }

  // Row n of the weight of one group of rows of x: its codes become what they are worth.
  void dequantise(std::int64_t group, std::int64_t n, double* codes) const {
    if (beside_.empty()) return;
    RowScales<double> row;
    for (std::size_t i = 0; i < beside_.size(); ++i) {
      const ScaleTensor& t = beside_[i];
      const double* of_row = &views_[i](0, 0);
      if (t.kind != ScaleKind::tensor_scale)
        of_row = &views_[i](group * t.rows + shape_.weight.scale_row(n), 0);
      if (t.kind == ScaleKind::scale) row.scale = of_row;
      if (t.kind == ScaleKind::zero_point) row.zero_point = of_row;
      if (t.kind == ScaleKind::tensor_scale) row.tensor_scale = *of_row;
    }
    fuseline::dequantise(shape_.weight, row, 0, shape_.K, codes);
  }

 private:
  GemmShape shape_;
  std::vector<ScaleTensor> beside_;
  std::vector<View<const double>> views_;
};

// The first operand's rows side by side, as numbers where they are codes.
inline std::vector<double> rows_in_numbers(const Graph& g, const TensorValues& in, const Op& op) {
  const View<const double> x = read(g, in, op.reads[0]);
  const StoredWeight activation = gemm_shape(op).activation;
  std::vector<double> numbers(static_cast<std::size_t>(x.rows * x.cols));
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double* const row = numbers.data() + m * x.cols;
    std::copy_n(&x(m, 0), x.cols, row);
    if (const auto scale = activation_scale(op))
      fuseline::dequantise(activation, {.scale = &read(g, in, *scale)(m, 0)}, 0, x.cols, row);
  }
  return numbers;
}

}  // namespace fuseline::reference
