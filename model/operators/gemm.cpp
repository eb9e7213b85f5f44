// A product with a weight, or one of the two products of its gradient.
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/weight_scales.h"

namespace fuseline {

namespace in_gemm {
namespace {

using namespace reference;

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

// Rows that lie apart are copied side by side, and codes become numbers.
Panel panel(const Graph& g, const Op& op, const TensorValues& in, std::vector<double>& copied) {
  copied = rows_in_numbers(g, in, op);
  return {copied.data(), op.reads[0].cols, 1};
}
Panel panel(const View<const double>& v, bool k_first, std::vector<double>& copied) {
  const double* data = v.data;
  std::int64_t stride = v.stride;
  if (!v.is_matrix()) {
    copied.resize(static_cast<std::size_t>(v.rows * v.cols));
    for (std::int64_t r = 0; r < v.rows; ++r)
      std::copy_n(&v(r, 0), v.cols, copied.data() + r * v.cols);
    data = copied.data();
    stride = v.cols;
  }
  return k_first ? Panel{data, 1, stride} : Panel{data, stride, 1};
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

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const GemmShape shape = gemm_shape(op);
  std::vector<double> copied_a, copied_b;
  const Panel a = shape.activation.quantised()
                      ? panel(g, op, in, copied_a)
                      : panel(read(g, in, op.reads[0]), shape.a_is_km, copied_a);
  const Panel b = panel(read(g, in, op.reads[1]), shape.b_is_kn, copied_b);
  const View<double> y = write(g, out, op.writes[0]);
  const WeightScales scales(g, in, op);
  std::vector<double> storage;
  for (std::int64_t n = 0; n < y.cols; n += kBlock) {
    const std::int64_t columns = std::min(kBlock, y.cols - n);
    const Panel rows = packed(b, n, columns, shape.K, storage);
    for (std::int64_t j = 0; j < columns; ++j)
      scales.dequantise(0, n + j, storage.data() + j * shape.K);
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

// dw = dy^T x, then dx = dy w.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  FUSELINE_ASSERT(!gemm_shape(op).weight.quantised(), op.name + ": check_workload refuses it");
  FUSELINE_ASSERT(
      !op.attributes.as<GemmLayout>().a_is_km && !op.attributes.as<GemmLayout>().b_is_kn, op.name);
  if (a.wants(1)) {
    const GemmLayout layout{.a_is_km = true, .b_is_kn = true};
    const Operand x = a.forward_value(op.reads[0]);
    a.emit("dw_" + op.name, operators::gemm, {a.dy(), x}, {a.target(1)}, layout);
  }
  if (a.wants(0)) {
    const GemmLayout layout{.b_is_kn = true};
    const Operand w = a.forward_value(op.reads[1]);
    a.emit("d_" + op.name, operators::gemm, {a.dy(), w}, {a.target(0)}, layout);
  }
}

}  // namespace
}  // namespace in_gemm

constinit const Operator operators::gemm{.name = "gemm",
                                         .op_class = OpClass::gemm,
                                         .locality = Locality::contraction,
                                         .formula = "y = x w^T",
                                         .reads = {{"x", "M", "K"},
                                                   {"w", "N", "K"},
                                                   {"scale", "SN", "SK", true},
                                                   {"zero_or_tensor_scale", "ZN", "ZK", true}},
                                         .write = kY,
                                         .flops = product_flops,
                                         .sum_length = product_length,
                                         .reference = in_gemm::compute,
                                         .lower = in_mainloop,
                                         .extent = widest,
                                         .gradient = in_gemm::gradient,
                                         .framework = never_alone,
                                         .mainloop = product_mainloop,
                                         .columns = ColumnOrder::weight_rows};

}  // namespace fuseline
