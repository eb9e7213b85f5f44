// The loss at the end of a model, its gradient, and the gradient of a gathered table.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

namespace {

// Maximum, and sum of exponentials above it, of columns [begin, end) of row m.
struct OnlineSum {
  double top = 0;
  double sum = 0;
};
OnlineSum online_sum(const View<const double>& x, std::int64_t m, std::int64_t begin,
                     std::int64_t end) {
  OnlineSum s{x(m, begin), 0};
  for (std::int64_t n = begin; n < end; ++n) s.top = std::max(s.top, x(m, n));
  for (std::int64_t n = begin; n < end; ++n) s.sum += std::exp(x(m, n) - s.top);
  return s;
}

std::int64_t index_at(const View<const double>& ids, std::int64_t m, std::int64_t count,
                      const Op& op) {
  const std::int64_t i = static_cast<std::int64_t>(ids(m, 0));
  FUSELINE_ASSERT(i >= 0 && i < count, op.name);
  return i;
}

}  // namespace

void cross_entropy(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> targets = read(g, in, op.reads[1]);
  const View<double> loss = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const OnlineSum s = online_sum(x, m, 0, x.cols);
    const double lse = s.top + std::log(s.sum);
    loss(m, 0) = lse - x(m, index_at(targets, m, x.cols, op));
    if (op.writes.size() > 1) write(g, out, op.writes[1])(m, 0) = lse;
  }
}

void cross_entropy_backward(const Graph& g, const Op& op, const TensorValues& in,
                            TensorValues& out) {
  const View<const double> dloss = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> targets = read(g, in, op.reads[2]);
  const View<const double> lse = read(g, in, op.reads[3]);
  const View<double> dx = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const std::int64_t target = index_at(targets, m, x.cols, op);
    for (std::int64_t n = 0; n < x.cols; ++n)
      dx(m, n) = dloss(m, 0) * (std::exp(x(m, n) - lse(m, 0)) - (n == target ? 1.0 : 0.0));
  }
}

// Thirds of the columns: maxima, sums, targets of the tiles of columns.
void cross_entropy_partial(const Graph& g, const Op& op, const TensorValues& in,
                           TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> targets = read(g, in, op.reads[1]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.tile_cols;
  const std::int64_t tiles = ceil_div(x.cols, tile);
  FUSELINE_ASSERT(partials.cols == 3 * tiles, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const std::int64_t target = index_at(targets, m, x.cols, op);
    for (std::int64_t t = 0; t < tiles; ++t) {
      const OnlineSum s = online_sum(x, m, t * tile, std::min((t + 1) * tile, x.cols));
      partials(m, t) = s.top;
      partials(m, tiles + t) = s.sum;
      partials(m, 2 * tiles + t) = target / tile == t ? x(m, target) : 0.0;
    }
  }
}

void cross_entropy_finish(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> loss = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(partials.cols % 3 == 0, op.name);
  const std::int64_t tiles = partials.cols / 3;
  for (std::int64_t m = 0; m < partials.rows; ++m) {
    double top = partials(m, 0);
    for (std::int64_t t = 1; t < tiles; ++t) top = std::max(top, partials(m, t));
    double sum = 0;
    double target = 0;
    for (std::int64_t t = 0; t < tiles; ++t) {
      sum += partials(m, tiles + t) * std::exp(partials(m, t) - top);
      target += partials(m, 2 * tiles + t);
    }
    const double lse = top + std::log(sum);
    loss(m, 0) = lse - target;
    if (op.writes.size() > 1) write(g, out, op.writes[1])(m, 0) = lse;
  }
}

// Without ids, row m belongs to position m mod T.
void embedding_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<double> dw = write(g, out, op.writes[0]);
  for (std::int64_t v = 0; v < dw.rows; ++v)
    for (std::int64_t n = 0; n < dw.cols; ++n) dw(v, n) = 0;
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    const std::int64_t row = op.reads.size() > 1
                                 ? index_at(read(g, in, op.reads[1]), m, dw.rows, op)
                                 : m % op.attributes.q_tokens;
    for (std::int64_t n = 0; n < dy.cols; ++n) dw(row, n) += dy(m, n);
  }
}

}  // namespace fuseline::reference
