// A published claim about fusion: what it says, of what, and what it leaves open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/config/config.h"
#include "sim/gpu/cost.h"

namespace fuseline::audit {

enum class Kind : std::uint8_t {
  speed_up,           // time under the baseline over time under the policy
  latency_reduction,  // 1 - 1/speed-up
  latency,            // whole-model latency before and after, perhaps with bandwidth utilisation
  gemm_time_share,    // share of the baseline's time that kernels with a GEMM take
  fits_in_memory,     // weights, cache and activations in one GPU's memory
  cost,               // of a million tokens
  compute_bound,      // memory-bound under the baseline, compute-bound under the policy
  coverage,           // share of a part of the block's FLOPs that kernels with a GEMM compute
  bandwidth_ratio,    // of a memory level on the chip to HBM
  other,              // anything that neither bytes nor times can answer
};

struct Source {
  std::string title;
  std::string author;  // or publisher; empty: not known
  std::string date;    // as exact as known
  std::string where;   // figure, table, section; empty: not known
};

// Both ends belong to the range. A single number has equal ends.
struct Range {
  double least = 0;
  double most = 0;
};

// A case of the source's own, in the figure's quantity.
struct OwnRow {
  std::string what;
  double value = 0;
};

// The figure claimed. Which members are used follows from the kind.
struct Figure {
  Range ratio;               // speed_up, bandwidth_ratio: factor; others: fraction
  bool up_to = false;        // the best case that the source found, not every case
  bool at_least = false;     // more supports it too
  bool everywhere = false;   // in every case: one that fails refutes it
  std::vector<OwnRow> rows;  // what the source itself found
  double reading_error = 0;  // of `ratio`, when it was read off a plot
  Seconds before, after;     // latency
  std::optional<double> utilisation_before, utilisation_after;  // latency; fraction of bandwidth
  Money cost;                                                   // cost, of a million tokens
  std::string currency;
};

// Values that a setting may take: one where the source says it, several where it does not.
struct Choices {
  std::vector<std::string> models, gpus;
  std::vector<Phase> phases;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> seqs;      // tokens per sequence in forward and train
  std::vector<std::int64_t> contexts;  // tokens in the cache in decode, with one new token
  std::vector<Dtype> dtypes;
  std::vector<StoredWeight> weights;      // number formats; one without a format: the type's own
  std::vector<StoredCache> caches;        // the same of keys and values
  std::vector<StoredWeight> activations;  // and of what meets the weights
  std::vector<std::string> baselines;     // policies before
  std::vector<std::string> policies;      // policies claimed
  std::vector<std::int64_t> weight_bits;
  std::vector<double> prices;       // an hour, in the figure's currency
  std::vector<std::string> levels;  // bandwidth_ratio: l2, smem, registers
};

struct Claim {
  std::string id;
  std::string file;
  std::string statement;  // in our words
  Source source;
  Kind kind = Kind::other;
  Figure figure;
  Choices choices;
  std::vector<std::string> stated;  // the names of those that the source says: "gpu", "batch"
  // Only the kernels whose main operator is of these steps of the block; empty: all of them.
  std::vector<std::string> sites;
  std::string part;                      // coverage: "attention" or "others"
  std::string why_not_testable;          // kind other, and what a setting cannot express
  std::vector<std::string> assumptions;  // what was filled in, and from where
};

const char* name_of(Kind);
std::vector<std::string> kind_words();

}  // namespace fuseline::audit
