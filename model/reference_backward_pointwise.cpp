// Gradients of the element-wise and pairwise operators.
#include <cmath>

#include "base/error.h"
#include "model/reference_maps.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

// The inverse rotation of every pair.
void rope_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> cos = read(g, in, op.reads[1]);
  const View<const double> sin = read(g, in, op.reads[2]);
  const View<double> dx = write(g, out, op.writes[0]);
  const std::int64_t d = op.attributes.head_width;
  FUSELINE_ASSERT(d > 0 && d % 2 == 0 && dy.cols % d == 0, op.name);
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    const std::int64_t t = m % cos.rows;
    for (std::int64_t head = 0; head < dy.cols; head += d) {
      for (std::int64_t j = 0; j < d / 2; ++j) {
        const Pair p = pair_of(op.attributes, j, d / 2);
        const double a = dy(m, head + p.a);
        const double b = dy(m, head + p.b);
        dx(m, head + p.a) = a * cos(t, p.a) + b * sin(t, p.b);
        dx(m, head + p.b) = b * cos(t, p.b) - a * sin(t, p.a);
      }
    }
  }
}

void swiglu_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> gu = read(g, in, op.reads[1]);
  const View<double> dgu = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    for (std::int64_t n = 0; n < dy.cols; ++n) {
      const Pair p = pair_of(op.attributes, n, dy.cols);
      const double up = gu(m, p.b);
      const double s = sigmoid(gu(m, p.a));
      const double t = gu(m, p.a) * s;
      dgu(m, p.a) = dy(m, n) * up * (s + t * (1.0 - s));
      dgu(m, p.b) = dy(m, n) * t;
      if (op.writes.size() > 1) write(g, out, op.writes[1])(m, n) = t * up;
    }
  }
}

void gelu_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  static constexpr double kScale = 0.7978845608028654;  // sqrt(2/π)
  map2(g, op, in, out, [](double dy, double x) {
    const double h = std::tanh(kScale * (x + 0.044715 * x * x * x));
    const double slope = kScale * (1.0 + 3.0 * 0.044715 * x * x);
    return dy * (0.5 * (1.0 + h) + 0.5 * x * (1.0 - h * h) * slope);
  });
}

void silu_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double dy, double x) {
    const double s = sigmoid(x);
    return dy * s * (1.0 + x * (1.0 - s));
  });
}

void cube(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * x * x; });
}

void scale(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [&](double x) { return op.attributes.scalar * x; });
}

void expand_rows(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> r = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = op.attributes.scalar * r(m, 0);
}

void concat(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<double> y = write(g, out, op.writes[0]);
  std::int64_t begin = 0;
  for (const Operand& operand : op.reads) {
    const View<const double> x = read(g, in, operand);
    FUSELINE_ASSERT(begin + x.cols <= y.cols, op.name);
    for (std::int64_t m = 0; m < x.rows; ++m)
      for (std::int64_t n = 0; n < x.cols; ++n) y(m, begin + n) = x(m, n);
    begin += x.cols;
  }
  FUSELINE_ASSERT(begin == y.cols, op.name);
}

}  // namespace fuseline::reference
