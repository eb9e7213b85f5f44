// Element-wise and pairwise operators, and the embedding gather.
#include <cmath>

#include "base/error.h"
#include "model/reference_maps.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

// The table is addressed by the columns of the data, so interleaved heads take an interleaved
// table.
void rope(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> cos = read(g, in, op.reads[1]);
  const View<const double> sin = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t d = op.attributes.head_width;
  FUSELINE_ASSERT(d > 0 && d % 2 == 0 && x.cols % d == 0, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const std::int64_t t = m % cos.rows;
    for (std::int64_t head = 0; head < x.cols; head += d) {
      for (std::int64_t j = 0; j < d / 2; ++j) {
        const Pair p = pair_of(op.attributes, j, d / 2);
        const double a = x(m, head + p.a);
        const double b = x(m, head + p.b);
        y(m, head + p.a) = a * cos(t, p.a) - b * sin(t, p.a);
        y(m, head + p.b) = b * cos(t, p.b) + a * sin(t, p.b);
      }
    }
  }
}

void swiglu(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> gu = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t n = 0; n < y.cols; ++n) {
      const Pair p = pair_of(op.attributes, n, y.cols);
      const double gate = gu(m, p.a);
      y(m, n) = gate * sigmoid(gate) * gu(m, p.b);
    }
  }
}

void gelu(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  static constexpr double kScale = 0.7978845608028654;  // sqrt(2/π)
  map(g, op, in, out,
      [](double x) { return 0.5 * x * (1.0 + std::tanh(kScale * (x + 0.044715 * x * x * x))); });
}

void silu(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * sigmoid(x); });
}

void square(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * x; });
}

void rsqrt(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return 1.0 / std::sqrt(x); });
}

void copy(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x; });
}

void add_scalar(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [&](double x) { return x + op.attributes.scalar; });
}

void add(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x + z; });
}

void multiply(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x * z; });
}

void negate_half(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t half = op.attributes.head_width / 2;
  const std::int64_t from = op.attributes.halves_swapped ? 0 : half;
  FUSELINE_ASSERT(half > 0 && y.cols % half == 0, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n)
      y(m, n) = -x(m, n / half * 2 * half + from + n % half);
}

void concat_halves(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> negated = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t half = op.attributes.head_width / 2;
  FUSELINE_ASSERT(half > 0 && negated.cols % half == 0, op.name);
  // Where the negated half goes; the half of x that stays comes from there.
  const std::int64_t to = op.attributes.halves_swapped ? half : 0;
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t n = 0; n < negated.cols; ++n) {
      const std::int64_t head = n / half * 2 * half;
      y(m, head + to + n % half) = negated(m, n);
      y(m, head + half - to + n % half) = x(m, head + to + n % half);
    }
  }
}

void embedding(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> ids = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  for (std::int64_t m = 0; m < y.rows; ++m) {
    const std::int64_t token = static_cast<std::int64_t>(ids(m, 0));
    FUSELINE_ASSERT(token >= 0 && token < w.tensor_rows, op.name);
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = w(token, n);
    if (op.reads.size() < 3) continue;
    const View<const double> positions = read(g, in, op.reads[2]);
    const std::int64_t position = a.kv_tokens - a.q_tokens + m % a.q_tokens;
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) += positions(position, n);
  }
}

}  // namespace fuseline::reference
