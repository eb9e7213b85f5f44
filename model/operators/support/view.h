// Row-column access to an operand's slice of a row-major tensor; shared by the reference functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/graph.h"
#include "model/reference.h"

namespace fuseline::reference {

template <class Element>
struct View {
  Element* data = nullptr;  // first element of the operand
  std::int64_t stride = 0;  // columns of the whole tensor
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t tensor_rows = 0;
  RowRuns at{};  // counted from `data`

  Element& operator()(std::int64_t row, std::int64_t col) const {
    return data[static_cast<std::size_t>(at.row(row) * stride + col)];
  }
  // Whether row r begins r · stride elements behind data.
  [[nodiscard]] bool is_matrix() const { return at.run == 0; }
};

template <class Element>
View<Element> view_of(const Tensor& t, Element* values, const Operand& o) {
  return {values + o.at.begin * t.cols + o.col_begin,
          t.cols,
          o.rows,
          o.cols,
          t.rows,
          {0, o.at.run, o.at.step}};
}

inline View<const double> read(const Graph& g, const TensorValues& values, const Operand& o) {
  return view_of(g.tensor(o.tensor), values.at(o.tensor).data(), o);
}

inline View<double> write(const Graph& g, TensorValues& values, const Operand& o) {
  return view_of(g.tensor(o.tensor), values.writable(o.tensor).data(), o);
}

}  // namespace fuseline::reference
