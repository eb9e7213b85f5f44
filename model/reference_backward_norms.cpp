// Gradients of norms, and the column and row sums they need, whole and in tiles.
#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

namespace {

// The normalised row element: r·x, or r·x - r·mean.
double normalised(const View<const double>& x, const View<const double>& stats, std::int64_t m,
                  std::int64_t n) {
  const double scaled = stats(m, 0) * x(m, n);
  return stats.cols == 2 ? scaled - stats(m, 1) : scaled;
}

}  // namespace

// RMSNorm with statistics [M, 1]; LayerNorm, which also removes the mean, with [M, 2].
void norm_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<const double> stats = read(g, in, op.reads[3]);
  const View<double> dx = write(g, out, op.writes[0]);
  const double width = static_cast<double>(x.cols);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double mean = 0;
    double projection = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) {
      const double gradient = dy(m, n) * w(0, n);
      if (stats.cols == 2) mean += gradient / width;
      projection += gradient * normalised(x, stats, m, n) / width;
    }
    for (std::int64_t n = 0; n < x.cols; ++n)
      dx(m, n) =
          stats(m, 0) * (dy(m, n) * w(0, n) - mean - normalised(x, stats, m, n) * projection);
  }
}

void norm_weight_grad(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> stats = read(g, in, op.reads[2]);
  const View<double> dw = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < x.cols; ++n) {
    double sum = 0;
    for (std::int64_t m = 0; m < x.rows; ++m) sum += dy(m, n) * normalised(x, stats, m, n);
    dw(0, n) = sum;
  }
}

void norm_apply(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> stats = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = normalised(x, stats, m, n) * w(0, n);
  if (op.reads.size() < 4) return;
  const View<const double> bias = read(g, in, op.reads[3]);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) += bias(0, n);
}

// Column t, or columns 2t and 2t + 1 when dy·g is summed too, for the t-th tile of columns.
void row_dot_partial(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> y = read(g, in, op.reads[1]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.tile_cols;
  const std::int64_t tiles = ceil_div(y.cols, tile);
  const std::int64_t sums = op.reads.size() > 3 ? 2 : 1;
  FUSELINE_ASSERT(partials.cols == sums * tiles, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      double dot = 0;
      double weighted = 0;
      for (std::int64_t n = t * tile; n < std::min((t + 1) * tile, y.cols); ++n) {
        const double bias = op.reads.size() > 2 ? read(g, in, op.reads[2])(0, n) : 0.0;
        dot += dy(m, n) * (y(m, n) - bias);
        if (sums == 2) weighted += dy(m, n) * read(g, in, op.reads[3])(0, n);
      }
      partials(m, sums * t) = dot;
      if (sums == 2) partials(m, 2 * t + 1) = weighted;
    }
  }
}

void row_dot_finish(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> c = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(op.attributes.norm_width > 0 && partials.cols % c.cols == 0, op.name);
  for (std::int64_t m = 0; m < partials.rows; ++m) {
    for (std::int64_t i = 0; i < c.cols; ++i) {
      double sum = 0;
      for (std::int64_t p = i; p < partials.cols; p += c.cols) sum += partials(m, p);
      c(m, i) = sum / static_cast<double>(op.attributes.norm_width);
    }
  }
}

void norm_backward_deferred(const Graph& g, const Op& op, const TensorValues& in,
                            TensorValues& out) {
  const View<const double> p = read(g, in, op.reads[0]);
  const View<const double> h = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<const double> stats = read(g, in, op.reads[3]);
  const View<const double> c = read(g, in, op.reads[4]);
  const bool has_residual = op.reads.size() > 5;
  const View<const double> residual = read(g, in, op.reads[has_residual ? 5 : 1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < h.rows; ++m) {
    const double mean = c.cols == 2 ? c(m, 1) : 0.0;
    for (std::int64_t n = 0; n < h.cols; ++n) {
      const double inner = w(0, n) * p(m, n) - normalised(h, stats, m, n) * c(m, 0) - mean;
      y(m, n) = (has_residual ? residual(m, n) : 0.0) + stats(m, 0) * inner;
    }
  }
}

// Partials of column n are row n; its t-th element covers the t-th tile of rows.
void col_stats_partial(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.tile_rows;
  FUSELINE_ASSERT(partials.cols == ceil_div(x.rows, tile), op.name);
  const auto factor = [&](std::int64_t m, std::int64_t n) {
    if (op.reads.size() < 2) return 1.0;
    const View<const double> h = read(g, in, op.reads[1]);
    return op.reads.size() < 3 ? h(m, n) : normalised(h, read(g, in, op.reads[2]), m, n);
  };
  for (std::int64_t n = 0; n < x.cols; ++n) {
    for (std::int64_t t = 0; t < partials.cols; ++t) {
      double sum = 0;
      for (std::int64_t m = t * tile; m < std::min((t + 1) * tile, x.rows); ++m)
        sum += x(m, n) * factor(m, n);
      partials(n, t) = sum;
    }
  }
}

void col_stats_finish(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < partials.rows; ++n) {
    double sum = 0;
    for (std::int64_t t = 0; t < partials.cols; ++t) sum += partials(n, t);
    y(0, n) = sum;
  }
}

void column_sum(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < x.cols; ++n) {
    double sum = 0;
    for (std::int64_t m = 0; m < x.rows; ++m) sum += x(m, n);
    y(0, n) = sum;
  }
}

}  // namespace fuseline::reference
