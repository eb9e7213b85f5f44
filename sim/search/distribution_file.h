// How often a block runs at which size, as data: a list of shapes, or requests of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/block/mixed_batch.h"

namespace fuseline {

// How often a block runs at a size. Weights count relative to each other.
struct ShapeWeight {
  std::int64_t batch = 1, tokens = 1, context = 0;
  double weight = 1;
  // Of a call whose sequences differ, in ascending order of new tokens and cache. The sizes above
  // are then all new tokens as sequences of one, and the longest cache.
  std::vector<SequenceGroup> sequences{};

  [[nodiscard]] bool mixed() const { return !sequences.empty(); }
};

ShapeWeight mixed_shape(std::vector<SequenceGroup> sequences, double weight);

// So many requests of these lengths, in tokens.
struct RequestWeight {
  std::int64_t prompt = 1, generated = 0;
  double weight = 1;
};

// How many different sizes the calls had, and which share of the calls the most frequent ones make:
// {8, 0.6} says that 8 sizes are 60 % of the calls. Ascending in both.
struct SizeCounts {
  std::int64_t different = 0;
  std::vector<std::pair<std::int64_t, double>> frequent;

  // The share of the `kept` most frequent sizes; between two entries on a straight line.
  [[nodiscard]] double share_of(std::int64_t kept) const;
};

// The counts of sizes that are so heavy, one weight for each size.
SizeCounts counts_of(std::vector<double> weights);

struct Distribution {
  std::string name;                          // as it was asked for
  std::string title{}, source{}, date{};     // empty in a CSV
  std::vector<std::string> assumed{};        // what the source does not say
  std::vector<ShapeWeight> shapes{};         // either these
  std::vector<RequestWeight> requests{};     // or these
  double counted = 0;                        // requests that were counted; 0: not said
  SizeCounts prompts{}, contexts{}, sums{};  // of the requests' calls: forward, decode, train
};

// A name of scenarios/distributions, a TOML or a CSV file. A CSV has the columns batch, tokens,
// context (0 but in decode) and weight, every shape once; or sequences and weight, a row for each
// call whose sequences differ (read_sequences()); or prompt, generated and perhaps weight, a row
// for each request. InputError (file, line, value): no such file, an unknown or missing column or
// field, a size that is none, a shape twice, weights that are all 0, more shapes than a search can
// take.
Distribution read_distribution(const std::string& name_or_path);

std::vector<std::string> distribution_names();

}  // namespace fuseline
