// Norms, whole and split into partial statistics, finisher and deferred scale.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

void rms_norm(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double squares = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) squares += x(m, n) * x(m, n);
    const double r = 1.0 / std::sqrt(squares / static_cast<double>(x.cols) + op.attributes.eps);
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = x(m, n) * r * w(0, n);
    if (op.writes.size() > 1) write(g, out, op.writes[1])(m, 0) = r;
  }
}

void layer_norm(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<const double> bias = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  const double width = static_cast<double>(x.cols);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double mean = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) mean += x(m, n);
    mean /= width;
    double variance = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) variance += (x(m, n) - mean) * (x(m, n) - mean);
    variance /= width;
    const double r = 1.0 / std::sqrt(variance + op.attributes.eps);
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = (x(m, n) - mean) * r * w(0, n) + bias(0, n);
    if (op.writes.size() < 2) continue;
    const View<double> stats = write(g, out, op.writes[1]);
    stats(m, 0) = r;
    stats(m, 1) = r * mean;
  }
}

void row_mean(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) sum += x(m, n);
    y(m, 0) = sum / static_cast<double>(x.cols);
  }
}

// Column t (RMSNorm: Σx²) or columns 2t and 2t+1 (LayerNorm: Σx, Σx²) for the t-th tile of columns.
void row_stats_partial(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.tile_cols;
  const std::int64_t tiles = ceil_div(x.cols, tile);
  const std::int64_t statistics = partials.cols / tiles;
  FUSELINE_ASSERT(partials.cols == statistics * tiles && (statistics == 1 || statistics == 2),
                  op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      double sum = 0;
      double squares = 0;
      for (std::int64_t n = t * tile; n < std::min((t + 1) * tile, x.cols); ++n) {
        sum += x(m, n);
        squares += x(m, n) * x(m, n);
      }
      if (statistics == 2) partials(m, 2 * t) = sum;
      partials(m, statistics * t + statistics - 1) = squares;
    }
  }
}

// [M, 1]: r = rsqrt(Σx²/D + ε). [M, 2]: r = rsqrt(Σx²/D - μ² + ε) and r·μ.
void row_stats_finish(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> stats = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(op.attributes.norm_width > 0, op.name);
  const double width = static_cast<double>(op.attributes.norm_width);
  const std::int64_t statistics = stats.cols;
  for (std::int64_t m = 0; m < partials.rows; ++m) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t p = 0; p < partials.cols; p += statistics) {
      if (statistics == 2) sum += partials(m, p);
      squares += partials(m, p + statistics - 1);
    }
    const double mean = sum / width;
    const double r =
        1.0 / std::sqrt(std::max(0.0, squares / width - mean * mean) + op.attributes.eps);
    stats(m, 0) = r;
    if (statistics == 2) stats(m, 1) = r * mean;
  }
}

void layer_norm_deferred(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> stats = read(g, in, op.reads[1]);
  const View<const double> weighted = read(g, in, op.reads[2]);
  const View<const double> shift = read(g, in, op.reads[3]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n)
      y(m, n) = stats(m, 0) * x(m, n) - stats(m, 1) * weighted(0, n) + shift(0, n);
}

}  // namespace fuseline::reference
