#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string_view>

#include "model/cache_formats/stored_cache.h"
#include "model/formats/least_scale.h"
#include "model/operators/operator_table.h"
#include "model/rotation_angles.h"
#include "sim/executor/inputs.h"
#include "sim/executor/quantise_weight.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kOutlierPeriod = 20;
constexpr double kPerNumber = 30;  // operations that make one

// FNV-1a, 64 bits.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

// splitmix64: every row of a tensor starts a stream of its own, so rows can be made in any order.
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Two normal numbers at a time (Box and Muller).
  float normal() {
    if (spare_ready_) {
      spare_ready_ = false;
      return spare_;
    }
    const std::uint64_t bits = next();
    const float u = (static_cast<float>(bits >> 41) + 0.5F) * 0x1p-23F;
    const float v = static_cast<float>((bits >> 17) & 0x7fffffU) * 0x1p-23F;
    const float radius = std::sqrt(-2.0F * std::log(u));
    const float angle = 2.0F * std::numbers::pi_v<float> * v;
    spare_ = radius * std::sin(angle);
    spare_ready_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::uint64_t state_;
  float spare_ = 0;
  bool spare_ready_ = false;
};

// An element is scale·(shift + normal number), which is `outliers` times larger in some columns.
struct OutlierSpread {
  float outliers = 1, scale = 1, shift = 0;
};

void fill_row(const Tensor& t, std::uint64_t vocabulary, const OutlierSpread& spread, Random random,
              float* values) {
  const bool norm_weight = t.role == Role::weight && t.rows == 1 && t.name.starts_with("w_");
  const float weight_scale = 1.0F / std::sqrt(static_cast<float>(t.cols));
  for (std::int64_t col = 0; col < t.cols; ++col) {
    float& value = values[col];
    if (vocabulary > 0) {
      value = static_cast<float>(random.next() % vocabulary);
    } else if (norm_weight) {
      value = 1.0F + 0.2F * random.normal();
    } else if (t.role == Role::weight) {
      value = (t.rows == 1 ? 0.2F : weight_scale) * random.normal();
    } else {
      const bool outlier = t.role == Role::input && col % kOutlierPeriod == kOutlierPeriod / 2;
      const float normal = (outlier ? spread.outliers : 1.0F) * random.normal();
      value = spread.scale * (spread.shift + normal);
    }
  }
}

void fill_rotation_row(const Tensor& t, const RotationAngles& angles, std::int64_t row,
                       float* values) {
  const bool sine = t.name.starts_with("sin");
  for (std::int64_t col = 0; col < t.cols; ++col) {
    const double angle = angles.at(row, col);
    values[col] = static_cast<float>(sine ? std::sin(angle) : std::cos(angle));
  }
}

std::uint64_t seed_of(const Tensor& t, std::uint64_t seed) {
  return seed ^ hash(t.name + ":" + std::to_string(t.rows) + "x" + std::to_string(t.cols));
}

Random row_stream(std::uint64_t tensor_seed, std::int64_t row) {
  Random seeds(tensor_seed + static_cast<std::uint64_t>(row) * 0x9e3779b97f4a7c15ULL);
  return Random(seeds.next());
}

// Whether the layer before makes the input, or no layer makes any.
bool is_stream(const Graph& graph, TensorId id) {
  return graph.with(Relation::carried_to_next_layer, id) ||
         std::ranges::none_of(graph.relations(), [](const Related& r) {
           return r.relation == Relation::carried_to_next_layer;
         });
}

// The weights that products read as codes: rounded from the numbers that they would be without a
// number format.
void add_quantised(const Graph& graph, std::uint64_t seed, const Workers& workers, Inputs& inputs) {
  for (const Op& op : graph.ops()) {
    if (!is_gemm(op)) continue;
    const GemmShape shape = gemm_shape(op);
    const Tensor& w = graph.tensor(op.reads[1].tensor);
    if (!shape.weight.quantised() || w.role != Role::weight || inputs.contains(w.name)) continue;
    const QuantisedWeight made = quantise_weight(
        shape.weight, w.rows / shape.N, shape.N, shape.K,
        [&](std::int64_t row, float* values) {
          fill_row(w, 0, {}, row_stream(seed_of(w, seed), row), values);
        },
        workers);
    inputs[w.name] = made.codes;
    for (std::size_t i = 0; i < made.beside.size(); ++i)
      inputs[graph.tensor(op.reads[2 + i].tensor).name] = made.beside[i];
  }
}

// Rows of a cache in few bits with scales of heads, as the appends of the tokens before left them.
void add_quantised_caches(const Graph& graph, std::uint64_t seed, const Workers& workers,
                          Inputs& inputs) {
  for (const Op& op : graph.ops()) {
    const auto* scaled = op.attributes.get<ScaledHeads>();
    if (scaled == nullptr || op.writes.size() < 2) continue;
    const Tensor& t = graph.tensor(op.writes[0].tensor);
    const Tensor& s = graph.tensor(op.writes[1].tensor);
    const auto codes = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
    const auto scales = std::make_shared<Storage>(s.dtype, s.rows, s.cols);
    const std::int64_t d = t.cols / scaled->heads;
    const auto largest = static_cast<float>(scaled->cache.largest());
    const Loop loop{t.rows, static_cast<double>(t.rows * t.cols) * kPerNumber};
    parallel_for(workers, loop, [&](std::int64_t row, int) {
      std::vector<float> values(static_cast<std::size_t>(t.cols));
      fill_row(t, 0, {}, row_stream(seed_of(t, seed), row), values.data());
      for (std::int64_t head = 0; head < scaled->heads; ++head) {
        float* const first = values.data() + head * d;
        float scale = 0;
        for (std::int64_t c = 0; c < d; ++c) scale = std::max(scale, std::fabs(first[c]));
        scale = std::max(scale / largest, static_cast<float>(kLeastScale));
        for (std::int64_t c = 0; c < d; ++c) first[c] /= scale;
        scales->write(row, head, 1, &scale);
      }
      codes->write(row, 0, t.cols, values.data());
    });
    inputs[t.name] = codes;
    inputs[s.name] = scales;
  }
}

}  // namespace

Inputs random_storage(const Graph& graph, std::uint64_t seed, const Workers& workers,
                      const InputDistribution& distribution) {
  Inputs inputs;
  add_quantised(graph, seed, workers, inputs);
  add_quantised_caches(graph, seed, workers, inputs);
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Tensor& t = graph.tensor(id);
    if (t.role == Role::activation || t.role == Role::output || inputs.contains(t.name)) continue;
    const auto storage = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
    const std::uint64_t tensor_seed = seed_of(t, seed);
    const std::uint64_t vocabulary = static_cast<std::uint64_t>(index_range(graph, id));
    const bool negative = is_negative(graph, id);
    const bool turns = t.role == Role::table && t.cols > 1;
    const RotationAngles angles(graph, id);
    OutlierSpread spread{static_cast<float>(distribution.outliers), 1.0F, 0.0F};
    if (t.role == Role::input && graph.related(id, Relation::gradient_of)) {
      spread.scale = static_cast<float>(distribution.gradient_scale);
    } else if (t.role == Role::input) {
      spread.scale = static_cast<float>(distribution.scale);
      spread.shift = static_cast<float>(distribution.shift);
      if (!is_stream(graph, id)) spread.outliers = 1;
    }
    const Loop loop{t.rows, static_cast<double>(t.rows * t.cols) * kPerNumber};
    parallel_for(workers, loop, [&](std::int64_t row, int) {
      std::vector<float> values(static_cast<std::size_t>(t.cols));
      if (turns) {
        fill_rotation_row(t, angles, row, values.data());
      } else {
        fill_row(t, vocabulary, spread, row_stream(tensor_seed, row), values.data());
      }
      if (negative)
        for (float& value : values) value = -std::fabs(value);
      storage->write(row, 0, t.cols, values.data());
    });
    inputs[t.name] = storage;
  }
  return inputs;
}

}  // namespace fuseline::executor
