#include "sim/executor/tensor_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kTile = 128;
// The root mean square of fewer numbers says little about a tile.
constexpr double kLeastInTile = 1024;

// The tile along one axis to which an index belongs; what is left over at the end joins the last
// tile when it is less than half of one.
std::int64_t tiles_along(std::int64_t length) {
  return std::max<std::int64_t>(1, (length + kTile / 2) / kTile);
}
std::int64_t tile_of(std::int64_t index, std::int64_t length) {
  return std::min(index / kTile, tiles_along(length) - 1);
}

struct Sums {
  double error = 0;
  double count = 0;
};

}  // namespace

TensorError compare(const Storage& got, const std::vector<double>& want, std::int64_t col_begin,
                    std::int64_t cols, const TensorOrder& order) {
  FUSELINE_ASSERT(static_cast<std::int64_t>(want.size()) == got.rows() * got.cols(),
                  "tensors of different sizes");
  TensorError e;
  double error = 0;
  double norm = 0;
  double fourth = 0;  // Σ want⁴
  double least = std::numeric_limits<double>::infinity(), most = -least;
  std::vector<Sums> sums(static_cast<std::size_t>(tiles_along(cols)));
  std::vector<double> tile_errors;
  std::vector<float> row(static_cast<std::size_t>(cols));
  float first = 0;
  bool differs = false;
  for (std::int64_t r = 0; r < got.rows(); ++r) {
    got.read(r, col_begin, cols, row.data());
    if (r == 0) first = row[0];
    const std::int64_t row_of = order.rows.empty() ? r : order.rows[static_cast<std::size_t>(r)];
    const double* wanted_row = want.data() + row_of * got.cols();
    for (std::int64_t c = 0; c < cols; ++c) {
      const double value = row[static_cast<std::size_t>(c)];
      if (!std::isfinite(value)) {
        e = {};
        e.relative_l2 = e.largest = e.worst_tile = std::numeric_limits<double>::infinity();
        e.not_finite = std::pair(r, col_begin + c);
        return e;
      }
      differs = differs || row[static_cast<std::size_t>(c)] != first;
      const auto place = static_cast<std::size_t>(col_begin + c);
      const double wanted = wanted_row[order.cols.empty() ? col_begin + c : order.cols[place]];
      least = std::min(least, wanted);
      most = std::max(most, wanted);
      const double off = value - wanted;
      error += off * off;
      norm += wanted * wanted;
      fourth += wanted * wanted * wanted * wanted;
      e.largest = std::max(e.largest, std::fabs(off));
      Sums& s = sums[static_cast<std::size_t>(tile_of(c, cols))];
      s.error += off * off;
      s.count += 1;
    }
    const bool last = r + 1 == got.rows();
    if (!last && tile_of(r, got.rows()) == tile_of(r + 1, got.rows())) continue;
    for (Sums& s : sums) {
      if (s.count >= kLeastInTile) tile_errors.push_back(std::sqrt(s.error / s.count));
      s = {};
    }
  }
  e.nothing_wanted = norm == 0;
  const double mean_square = norm / static_cast<double>(got.rows() * cols);
  e.relative_l2 = std::sqrt(error) / std::sqrt(norm);
  e.worst_tile = e.relative_l2;
  if (!tile_errors.empty())
    e.worst_tile =
        *std::max_element(tile_errors.begin(), tile_errors.end()) / std::sqrt(mean_square);
  e.numbers = norm * norm / fourth;
  // Gates of one expert a token are 1, all of them: such numbers are judged as others are.
  const bool wanted_differ = most - least > 1e-12 * std::max(std::fabs(most), std::fabs(least));
  e.all_equal = !differs && got.rows() * cols > 1 && (wanted_differ || !(e.relative_l2 < 0.5));
  return e;
}

}  // namespace fuseline::executor
