#include "sim/executor/tensor_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/error.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kTile = 128;

struct Sums {
  double error = 0;
  double count = 0;
};

}  // namespace

TensorError compare(const Storage& got, const std::vector<double>& want, std::int64_t col_begin,
                    std::int64_t cols) {
  FUSELINE_ASSERT(static_cast<std::int64_t>(want.size()) == got.rows() * got.cols(),
                  "tensors of different sizes");
  TensorError e;
  double error = 0;
  double norm = 0;
  const std::int64_t tiles = ceil_div(cols, kTile);
  std::vector<Sums> sums(static_cast<std::size_t>(tiles));
  std::vector<double> tile_errors;
  std::vector<float> row(static_cast<std::size_t>(cols));
  float first = 0;
  bool differs = false;
  for (std::int64_t r = 0; r < got.rows(); ++r) {
    got.read(r, col_begin, cols, row.data());
    if (r == 0) first = row[0];
    for (std::int64_t c = 0; c < cols; ++c) {
      const double value = row[static_cast<std::size_t>(c)];
      if (!std::isfinite(value)) {
        const double infinite = std::numeric_limits<double>::infinity();
        return {infinite, infinite, infinite, std::pair(r, col_begin + c), false};
      }
      differs = differs || row[static_cast<std::size_t>(c)] != first;
      const double wanted = want[static_cast<std::size_t>(r * got.cols() + col_begin + c)];
      const double off = value - wanted;
      error += off * off;
      norm += wanted * wanted;
      e.largest = std::max(e.largest, std::fabs(off));
      Sums& s = sums[static_cast<std::size_t>(c / kTile)];
      s.error += off * off;
      s.count += 1;
    }
    if ((r + 1) % kTile != 0 && r + 1 != got.rows()) continue;
    for (Sums& s : sums) {
      tile_errors.push_back(std::sqrt(s.error / s.count));
      s = {};
    }
  }
  const double mean_square = norm / static_cast<double>(got.rows() * cols);
  e.relative_l2 = std::sqrt(error) / std::sqrt(norm);
  e.worst_tile = *std::max_element(tile_errors.begin(), tile_errors.end()) / std::sqrt(mean_square);
  e.all_equal = !differs && got.rows() * cols > 1;
  return e;
}

}  // namespace fuseline::executor
