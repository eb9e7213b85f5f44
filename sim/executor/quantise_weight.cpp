#include "sim/executor/quantise_weight.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/formats/weight_format.h"
#include "sim/executor/float_formats.h"

namespace fuseline::executor {
namespace {

// Smallest and largest number of a group.
struct Spread {
  float least = 0, most = 0;

  void add(float value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] float magnitude() const { return std::max(-least, most); }
};

// Scale and zero point of one group, as they are stored.
struct Group {
  float scale = 1;
  float zero_point = 0;
};

Group group_of(const WeightFormat& format, const Spread& spread, float tensor_scale) {
  const auto largest = static_cast<float>(format.largest.value);
  const float magnitude = spread.magnitude() / tensor_scale;
  Group g;
  if (spread.magnitude() == 0) return g;
  if (format.power_of_two) {
    // OCP Microscaling Formats 1.0, section 6.3: the exponents' difference; larger ones saturate.
    g.scale = std::exp2(std::floor(std::log2(magnitude)) - std::floor(std::log2(largest)));
  } else if (format.zero_points) {
    // 2·largest + 1 steps: codes from -largest - 1 to largest.
    g.scale = (spread.most - spread.least) / tensor_scale / (2 * largest + 1);
  } else {
    g.scale = magnitude / largest;
  }
  g.scale = rounded_to(format.scale, g.scale);
  if (g.scale == 0) g.scale = rounded_to(format.scale, std::numeric_limits<float>::min());
  if (g.scale == 0) g.scale = 1;  // all of the group then rounds to zero
  if (format.zero_points)
    g.zero_point = rounded_to(Dtype::int8,
                              std::nearbyint(-largest - 1 - spread.least / tensor_scale / g.scale));
  return g;
}

class Quantiser {
 public:
  Quantiser(const StoredWeight& weight, std::int64_t matrices, std::int64_t N, std::int64_t K,
            const std::function<void(std::int64_t, float*)>& fill, const Workers& workers)
      : weight_(weight),
        format_(*weight.format),
        N_(N),
        K_(K),
        matrices_(matrices),
        fill_(fill),
        workers_(workers),
        beside_(weight.beside(N, K)) {}

  QuantisedWeight run() {
    if (format_.tensor_scale) find_tensor_scale();
    auto codes = std::make_shared<Storage>(weight_.element(), matrices_ * N_, K_);
    std::vector<std::shared_ptr<Storage>> beside;
    for (const ScaleTensor& t : beside_) {
      const bool of_all = t.kind == ScaleKind::tensor_scale;
      beside.push_back(std::make_shared<Storage>(t.type, of_all ? 1 : matrices_ * t.rows, t.cols));
      if (of_all) beside.back()->write(0, 0, 1, &tensor_scale_);
    }
    // Rows that share their scales are one task.
    const std::int64_t blocks = beside_.front().rows;
    constexpr double kPerNumber = 40;
    const auto numbers = static_cast<double>(matrices_ * N_ * K_);
    parallel_for(workers_, Loop{matrices_ * blocks, numbers * kPerNumber},
                 [&](std::int64_t block, int) { quantise_block(block, blocks, *codes, beside); });
    QuantisedWeight result{codes, {}};
    result.beside.assign(beside.begin(), beside.end());
    return result;
  }

 private:
  [[nodiscard]] std::size_t group(std::int64_t k) const {
    return static_cast<std::size_t>(weight_.group == 0 ? 0 : k / weight_.group);
  }

  void find_tensor_scale() {
    std::vector<float> row(static_cast<std::size_t>(K_));
    float magnitude = 0;
    for (std::int64_t n = 0; n < matrices_ * N_; ++n) {
      fill_(n, row.data());
      for (const float v : row) magnitude = std::max(magnitude, std::fabs(v));
    }
    // The largest group's scale becomes the largest number of the scales' type.
    const float most = rounded_to(format_.scale, std::numeric_limits<float>::max());
    if (magnitude > 0) tensor_scale_ = magnitude / (static_cast<float>(format_.largest) * most);
  }

  void quantise_block(std::int64_t block, std::int64_t blocks, Storage& codes,
                      const std::vector<std::shared_ptr<Storage>>& beside) const {
    const std::int64_t in_matrix = block % blocks * format_.group_rows;
    const std::int64_t first = block / blocks * N_ + in_matrix;
    const std::int64_t rows = std::min(format_.group_rows, N_ - in_matrix);
    std::vector<float> values(static_cast<std::size_t>(rows * K_));
    std::vector<Spread> spreads(static_cast<std::size_t>(beside_.front().cols));
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const row = values.data() + r * K_;
      fill_(first + r, row);
      for (std::int64_t k = 0; k < K_; ++k) spreads[group(k)].add(row[k]);
    }
    std::vector<Group> groups;
    std::vector<float> scales, zeros;
    for (const Spread& s : spreads) {
      groups.push_back(group_of(format_, s, tensor_scale_));
      scales.push_back(groups.back().scale);
      zeros.push_back(groups.back().zero_point);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const row = values.data() + r * K_;
      for (std::int64_t k = 0; k < K_; ++k) {
        const Group& g = groups[group(k)];
        row[k] = row[k] / (g.scale * tensor_scale_) + g.zero_point;
      }
      codes.write(first + r, 0, K_, row);
    }
    for (std::size_t i = 0; i < beside_.size(); ++i) {
      if (beside_[i].kind == ScaleKind::tensor_scale) continue;
      const std::vector<float>& numbers = beside_[i].kind == ScaleKind::scale ? scales : zeros;
      beside[i]->write(block, 0, beside_[i].cols, numbers.data());
    }
  }

  const StoredWeight& weight_;
  const WeightFormat& format_;
  std::int64_t N_, K_, matrices_;
  const std::function<void(std::int64_t, float*)>& fill_;
  const Workers& workers_;
  std::vector<ScaleTensor> beside_;
  float tensor_scale_ = 1;
};

}  // namespace

QuantisedWeight quantise_weight(const StoredWeight& weight, std::int64_t matrices, std::int64_t N,
                                std::int64_t K,
                                const std::function<void(std::int64_t n, float* row)>& fill,
                                const Workers& workers) {
  FUSELINE_ASSERT(weight.quantised() && matrices > 0 && N > 0 && K > 0, "nothing to quantise");
  return Quantiser(weight, matrices, N, K, fill, workers).run();
}

}  // namespace fuseline::executor
