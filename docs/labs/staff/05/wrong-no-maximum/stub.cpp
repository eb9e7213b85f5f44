#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// rows × cols elements from row `first` on.
void load_tile(const Source& from, std::int64_t first, std::int64_t rows, std::vector<float>& to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < from.cols(); ++c) {
      to[at(i * from.cols() + c)] = from.load(first + i, c);
    }
  }
}

}  // namespace

// Exponentials of the scores as they are.
void attend(const Source& q, const Source& k, const Source& v, const Target& y,
            std::int64_t query_tile, std::int64_t key_tile, float scale) {
  const std::int64_t d = q.cols();
  std::vector<float> queries(at(query_tile * d));
  std::vector<float> sums(at(query_tile * d));
  std::vector<float> keys(at(key_tile * d));
  std::vector<float> values(at(key_tile * d));
  std::vector<float> scores(at(key_tile));
  std::vector<float> denominator(at(query_tile));
  for (std::int64_t first = 0; first < q.rows(); first += query_tile) {
    const std::int64_t rows = std::min(query_tile, q.rows() - first);
    load_tile(q, first, rows, queries);
    std::fill(sums.begin(), sums.end(), 0.0F);
    std::fill(denominator.begin(), denominator.end(), 0.0F);
    for (std::int64_t key = 0; key < k.rows(); key += key_tile) {
      const std::int64_t cols = std::min(key_tile, k.rows() - key);
      load_tile(k, key, cols, keys);
      load_tile(v, key, cols, values);
      for (std::int64_t i = 0; i < rows; ++i) {
        const float highest = 0;
        for (std::int64_t j = 0; j < cols; ++j) {
          float score = 0;
          for (std::int64_t c = 0; c < d; ++c)
            score += queries[at(i * d + c)] * keys[at(j * d + c)];
          scores[at(j)] = score * scale;
        }
        for (std::int64_t j = 0; j < cols; ++j) {
          const float weight = std::exp(scores[at(j)] - highest);
          denominator[at(i)] += weight;
          for (std::int64_t c = 0; c < d; ++c)
            sums[at(i * d + c)] += weight * values[at(j * d + c)];
        }
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < d; ++c) {
        y.store(first + i, c, sums[at(i * d + c)] / denominator[at(i)]);
      }
    }
  }
}
