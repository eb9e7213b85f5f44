// Products in fp64. This file is optimised fully in every build: a check of a large product spends
// its time here.
#include "model/programs/mainloop_meanings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/parallel_for.h"
#include "model/batch_corner.h"
#include "model/formats/stored_weight.h"

namespace fuseline {

namespace {

// One product of a GEMM's batch, groups or depths.
struct Product {
  std::int64_t number = 0;       // of its matrix, by which scales are found
  Corner a, b;                   // of its matrices in the operands
  std::int64_t rows = 0, k = 0;  // of a and of the result; summed
  std::int64_t first_row = 0;    // of the result, in the index space
};

std::vector<Product> products_of(const GemmMainloop& m) {
  std::vector<Product> all;
  std::int64_t done = 0;  // rows of all groups so far, or parts of k
  for (std::size_t g = 0; g < m.groups.size(); ++g) {
    const auto number = static_cast<std::int64_t>(g);
    all.push_back(
        {number, {done, 0}, {number * (m.b_is_kn ? m.K : m.N), 0}, m.groups[g], m.K, done});
    done += m.groups[g];
  }
  for (std::size_t g = 0; g < m.depths.size(); ++g) {
    const auto number = static_cast<std::int64_t>(g);
    all.push_back({number, {done, 0}, {done, 0}, m.M, m.depths[g], number * m.M});
    done += m.depths[g];
  }
  if (!all.empty()) return all;
  for (std::int64_t p = 0; p < m.batch; ++p) {
    const auto corner = [&](const Operand& o, bool k_first, std::int64_t outer) {
      if (m.batch == 1) return Corner{};
      return corner_of(o, m.batch, p, k_first ? m.K : outer, k_first ? outer : m.K);
    };
    all.push_back({p, corner(m.a, m.a_is_km, m.M), corner(m.b, m.b_is_kn, m.N), m.M, m.K,
                   p / m.summed * m.M});
  }
  return all;
}

// [rows, k] of the first operand: what its codes are worth.
std::vector<double> rows_of_a(const GemmMainloop& m, const Product& p, const Meaning& exact) {
  std::vector<double> a(static_cast<std::size_t>(p.rows * p.k));
  for (std::int64_t r = 0; r < p.rows; ++r) {
    double* const row = a.data() + r * p.k;
    for (std::int64_t k = 0; k < p.k; ++k)
      row[k] = m.a_is_km ? exact.read(m.a, p.a.row + k, p.a.col + r)
                         : exact.read(m.a, p.a.row + r, p.a.col + k);
    if (!m.activation.quantised()) continue;
    std::vector<double> scale;
    for (std::int64_t c = 0; c < m.a_scale->cols; ++c)
      scale.push_back(exact.read(*m.a_scale, p.a.row + r, c));
    dequantise(m.activation, RowScales<double>{.scale = scale.data()}, 0, p.k, row);
  }
  return a;
}

// Row n of the second operand, k of them.
void row_of_b(const GemmMainloop& m, const Product& p, std::int64_t n, const Meaning& exact,
              double* row) {
  if (m.b_is_kn)
    for (std::int64_t k = 0; k < p.k; ++k) row[k] = exact.read(m.b, p.b.row + k, p.b.col + n);
  else
    std::copy_n(exact.from(m.b, p.b.row + n, p.b.col), p.k, row);
  if (!m.weight.quantised()) return;
  const std::vector<ScaleTensor> beside = m.weight.beside(m.N, m.K);
  std::vector<std::vector<double>> numbers(beside.size());
  RowScales<double> scales;
  for (std::size_t i = 0; i < beside.size(); ++i) {
    const ScaleTensor& t = beside[i];
    const std::int64_t matrix = m.groups.empty() ? 0 : p.number;
    const std::int64_t at =
        t.kind == ScaleKind::tensor_scale ? 0 : matrix * t.rows + m.weight.scale_row(n);
    for (std::int64_t c = 0; c < t.cols; ++c)
      numbers[i].push_back(exact.read(m.beside_b[i], at, c));
    if (t.kind == ScaleKind::scale) scales.scale = numbers[i].data();
    if (t.kind == ScaleKind::zero_point) scales.zero_point = numbers[i].data();
    if (t.kind == ScaleKind::tensor_scale) scales.tensor_scale = numbers[i][0];
  }
  dequantise(m.weight, scales, 0, p.k, row);
}

// Columns of a product whose sums are beside each other, so that b is read once.
constexpr std::int64_t kBeside = 8;

// Columns [n, n + kBeside) of the result, of those that there are.
void multiply(const GemmMainloop& m, const Product& p, std::int64_t n, const Meaning& exact,
              const std::vector<double>& a, ExactMatrix& y) {
  const std::int64_t cols = std::min(kBeside, m.N - n);
  std::vector<double> row(static_cast<std::size_t>(p.k));
  std::vector<double> b(static_cast<std::size_t>(p.k * kBeside));  // [k, kBeside]
  for (std::int64_t c = 0; c < cols; ++c) {
    row_of_b(m, p, n + c, exact, row.data());
    for (std::int64_t k = 0; k < p.k; ++k)
      b[static_cast<std::size_t>(k * kBeside + c)] = row[static_cast<std::size_t>(k)];
  }
  for (std::int64_t r = 0; r < p.rows; ++r) {
    double sums[kBeside] = {};
    const double* of_a = a.data() + r * p.k;
    const double* of_b = b.data();
    for (std::int64_t k = 0; k < p.k; ++k, of_b += kBeside)
      for (std::int64_t c = 0; c < kBeside; ++c) sums[c] += of_a[k] * of_b[c];
    for (std::int64_t c = 0; c < cols; ++c) y.at(p.first_row + r, n + c) += sums[c];
  }
}

}  // namespace

void product_meaning(const GemmMainloop& m, Meaning& exact) {
  ExactMatrix y(exact.rows(), m.N);
  for (const Product& p : products_of(m)) {
    const std::vector<double> a = rows_of_a(m, p, exact);
    parallel_loop(exact.threads(), (m.N + kBeside - 1) / kBeside, nullptr,
                  [&](std::int64_t block, int) { multiply(m, p, block * kBeside, exact, a, y); });
  }
  exact.make(0, std::move(y));
  exact.round(0, static_cast<double>(m.K), -1);
}

}  // namespace fuseline
