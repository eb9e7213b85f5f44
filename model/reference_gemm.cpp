#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "model/operators.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

namespace {

constexpr std::int64_t kBlock = 4;

// An operand as [outer, K] in either layout.
struct Panel {
  const double* data = nullptr;
  std::int64_t outer_stride = 0;
  std::int64_t k_stride = 1;

  const double& operator()(std::int64_t i, std::int64_t k) const {
    return data[static_cast<std::size_t>(i * outer_stride + k * k_stride)];
  }
};

Panel panel(const View<const double>& v, bool k_first) {
  return k_first ? Panel{v.data, 1, v.stride} : Panel{v.data, v.stride, 1};
}

// Rows [n, n + count) of b, K adjacent, so that one copy serves all rows of a.
Panel packed(const Panel& b, std::int64_t n, std::int64_t count, std::int64_t K,
             std::vector<double>& storage) {
  storage.resize(static_cast<std::size_t>(count * K));
  for (std::int64_t k = 0; k < K; ++k)
    for (std::int64_t j = 0; j < count; ++j)
      storage[static_cast<std::size_t>(j * K + k)] = b(n + j, k);
  return {storage.data(), K, 1};
}

// A 4 × 4 block of dot products at a time: sixteen independent sums keep the adder busy.
void block(const Panel& a, const Panel& b, const View<double>& y, std::int64_t m, std::int64_t n,
           std::int64_t K) {
  std::array<double, kBlock * kBlock> sums{};
  for (std::int64_t k = 0; k < K; ++k)
    for (std::int64_t i = 0; i < kBlock; ++i)
      for (std::int64_t j = 0; j < kBlock; ++j)
        sums[static_cast<std::size_t>(i * kBlock + j)] += a(m + i, k) * b(j, k);
  for (std::int64_t i = 0; i < kBlock; ++i)
    for (std::int64_t j = 0; j < kBlock; ++j)
      y(m + i, n + j) = sums[static_cast<std::size_t>(i * kBlock + j)];
}

}  // namespace

void gemm(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const GemmShape shape = gemm_shape(op);
  const Panel a = panel(read(g, in, op.reads[0]), shape.a_is_km);
  const Panel b = panel(read(g, in, op.reads[1]), shape.b_is_kn);
  const View<double> y = write(g, out, op.writes[0]);
  std::vector<double> storage;
  for (std::int64_t n = 0; n < y.cols; n += kBlock) {
    const std::int64_t columns = std::min(kBlock, y.cols - n);
    const Panel rows = packed(b, n, columns, shape.K, storage);
    for (std::int64_t m = 0; m < y.rows; m += kBlock) {
      if (columns == kBlock && m + kBlock <= y.rows) {
        block(a, rows, y, m, n, shape.K);
        continue;
      }
      for (std::int64_t i = m; i < std::min(m + kBlock, y.rows); ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < shape.K; ++k) sum += a(i, k) * rows(j, k);
          y(i, n + j) = sum;
        }
      }
    }
  }
}

}  // namespace fuseline::reference
