// Row-column access to an operand's slice of a row-major tensor; shared by the reference functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/graph.h"
#include "model/reference.h"

namespace fuseline::reference {

template <class Element>
struct View {
  Element* data = nullptr;  // first element of the slice
  std::int64_t stride = 0;  // columns of the whole tensor
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t tensor_rows = 0;

  Element& operator()(std::int64_t row, std::int64_t col) const {
    return data[static_cast<std::size_t>(row * stride + col)];
  }
};

inline View<const double> read(const Graph& g, const TensorValues& values, const Operand& o) {
  const Tensor& t = g.tensor(o.tensor);
  return {values.at(o.tensor).data() + o.col_begin, t.cols, o.rows, o.cols, t.rows};
}

inline View<double> write(const Graph& g, TensorValues& values, const Operand& o) {
  const Tensor& t = g.tensor(o.tensor);
  return {values.writable(o.tensor).data() + o.col_begin, t.cols, o.rows, o.cols, t.rows};
}

}  // namespace fuseline::reference
