#include "model/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"

namespace fuseline {
namespace {

[[noreturn]] void refuse(const std::string& file, const char* field, const std::string& value,
                         const std::string& message, const std::string& allowed = {}) {
  throw InputError(
      {.file = file, .field = field, .value = value, .message = message, .allowed = allowed});
}

std::string whole_numbers(std::int64_t least, std::int64_t most) {
  return fmt::format("a whole number from {} to {}", least, most);
}

void check_range(const std::string& file, const char* field, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value >= least && value <= most) return;
  const char* message = value < 0 ? "is negative" : value < least ? "is too small" : "is too large";
  refuse(file, field, std::to_string(value), message, whole_numbers(least, most));
}

template <class Enum, std::size_t N>
Enum parse_word(const std::string& text, const std::string& field, const char* what,
                const std::array<Enum, N>& values) {
  std::vector<std::string> words;
  for (const Enum value : values) {
    if (text == name_of(value)) return value;
    words.emplace_back(name_of(value));
  }
  throw InputError({.field = field,
                    .value = text,
                    .message = fmt::format("unknown {}", what),
                    .allowed = fmt::format("{}", fmt::join(words, ", ")),
                    .nearest = nearest_name(text, words)});
}

}  // namespace

void check_config(const ModelConfig& c, const std::string& file) {
  check_range(file, "layers", c.layers, 1, kMostLayers);
  // A letter that no block has may be missing.
  const auto least = [&](const char* letter) { return has_parameter(c, letter) ? 1 : 0; };
  check_range(file, "D", c.D, least("D"), kLargestDimension);
  check_range(file, "F", c.F, least("F"), kLargestDimension);
  check_range(file, "H", c.H, least("H"), kLargestDimension);
  check_range(file, "Hkv", c.Hkv, least("Hkv"), kLargestDimension);
  check_range(file, "d", c.d, least("d"), kLargestDimension);
  const bool has_ends = !c.entry.empty() || !c.exit.empty();
  check_range(file, "V", c.V, ends_have_parameter(c, "V") ? 1 : 0, kLargestDimension);
  check_range(file, "max_positions", c.max_positions, has_ends ? 1 : 0, kLargestDimension);
  check_range(file, "sliding_window", c.sliding_window, 0, kLargestDimension);

  std::int64_t counted = 0;
  for (const BlockUse& use : c.blocks) counted += c.layers_of(use);
  if (counted != c.layers)
    refuse(file, "layers", std::to_string(c.layers),
           fmt::format("the model's blocks are {} layers together", counted),
           "as many as its blocks");
  if (c.Hkv > 0 && (c.Hkv > c.H || c.H % c.Hkv != 0)) {
    refuse(file, "Hkv", std::to_string(c.Hkv),
           fmt::format("the {} query heads cannot share that many key/value heads evenly", c.H),
           fmt::format("a divisor of H = {}", c.H));
  }
  // At most 3 · 2^24 · 2^24, so no overflow.
  if (c.qkv_width() > kLargestDimension) {
    refuse(file, "d", std::to_string(c.d),
           fmt::format("query, key and value columns together, (H + 2 Hkv) d = {}, are too many",
                       c.qkv_width()),
           fmt::format("at most {} columns", kLargestDimension));
  }
  if (c.is_all("llama") && c.d % 2 != 0) {
    refuse(file, "d", std::to_string(c.d), "is odd, but RoPE rotates pairs of columns",
           "an even number");
  }
  if (!std::isfinite(c.norm_eps) || c.norm_eps <= 0 || c.norm_eps >= 1) {
    refuse(file, "norm_eps", fmt::format("{}", c.norm_eps), "is out of range",
           "a number above 0 and below 1");
  }
  if (!std::isfinite(c.rope_theta) || c.rope_theta < 1 || c.rope_theta > 1e12) {
    refuse(file, "rope_theta", fmt::format("{}", c.rope_theta), "is out of range",
           "a number from 1 to 1e12");
  }
}

namespace {

void check_routing(const Workload& w, const ModelConfig& config) {
  // A model without a name stands for one that is not known yet.
  if (!w.routing.given() || config.name.empty()) return;
  if (std::none_of(config.blocks.begin(), config.blocks.end(), has_experts))
    refuse("", "routing", routing_text(w.routing),
           fmt::format("says how tokens go to experts, and {} has none", config.name),
           "a model with experts");
}

}  // namespace

void check_workload(const Workload& w, const ModelConfig& config) {
  check_range("", "batch", w.batch, 1, kLargestDimension);
  check_range("", "seq", w.seq, 1, kLargestDimension);
  if (w.rows() > kLargestDimension) {
    refuse("", "seq", std::to_string(w.seq),
           fmt::format("{} sequences of {} tokens are too many rows", w.batch, w.seq),
           fmt::format("at most {} tokens over all sequences", kLargestDimension));
  }
  if (w.phase == Phase::decode) {
    if (w.context == 0) {
      refuse("", "context", "",
             "missing: decode needs the tokens in the cache, the new ones included",
             whole_numbers(w.seq, kLargestDimension));
    }
    if (w.context > 0 && w.context < w.seq) {
      refuse("", "context", std::to_string(w.context),
             fmt::format("is shorter than the {} new tokens (seq), which it includes", w.seq),
             whole_numbers(w.seq, kLargestDimension));
    }
    check_range("", "context", w.context, w.seq, kLargestDimension);
    if (w.batch * w.context > kLargestCache) {
      refuse(
          "", "context", std::to_string(w.context),
          fmt::format("{} sequences with {} tokens each are too large a cache", w.batch, w.context),
          fmt::format("at most {} tokens over all sequences", kLargestCache));
    }
  } else if (w.context != 0) {
    refuse("", "context", std::to_string(w.context),
           fmt::format("has no meaning in {}, where the context is the sequence", name_of(w.phase)),
           "leave it out, or choose phase decode");
  }
  if (w.phase == Phase::train && w.formats.weights.quantised())
    refuse("", "weights", w.formats.weights.name(),
           "has no gradients: weights in few bits are not trained",
           "phase forward or decode, or no number format of weights");
  if (w.phase == Phase::train && w.formats.cache.quantised())
    refuse("", "kv", w.formats.cache.name(), "has no meaning in train, which keeps no cache",
           "phase forward or decode, or no number format of the cache");
  if (const StoredWeight& rows = w.formats.activations; rows.quantised()) {
    const std::string needed = weights_for(rows);
    if (w.formats.weights.name() != needed)
      refuse("", "activations", rows.name(),
             fmt::format("is multiplied by weights in {}, not in {}", needed, weights_text(w)),
             fmt::format("weights {}, or activations {}", needed, name_of(w.dtype)));
  }
  check_routing(w, config);
  // The largest tensor of any policy: the attention scores [B·H·T, S].
  static_cast<void>(checked_product<Bytes>(w.batch, std::max<std::int64_t>(1, config.H), w.seq,
                                           w.kv_tokens(), 4));
}

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::train:
      return "train";
    case Phase::decode:
      return "decode";
  }
  FUSELINE_ASSERT(false, "phase");
}

Phase parse_phase(const std::string& text, const std::string& field) {
  return parse_word(text, field, "phase", std::array{Phase::forward, Phase::train, Phase::decode});
}

Dtype parse_dtype(const std::string& text, const std::string& field) {
  return parse_word(text, field, "dtype", std::array{Dtype::bf16, Dtype::fp16, Dtype::fp32});
}

std::string weights_text(const Workload& w) {
  return w.formats.weights.quantised() ? w.formats.weights.name() : name_of(w.dtype);
}

std::string cache_text(const Workload& w) {
  return w.formats.cache.quantised() ? w.formats.cache.name() : name_of(w.dtype);
}

std::string activations_text(const Workload& w) {
  return w.formats.activations.quantised() ? w.formats.activations.name() : name_of(w.dtype);
}

std::string describe(const Workload& w) {
  std::string formats;
  if (w.routing.given()) formats += ", routing " + routing_text(w.routing);
  if (w.formats.weights.quantised()) formats += ", weights " + w.formats.weights.name();
  if (w.formats.activations.quantised()) formats += ", activations " + w.formats.activations.name();
  if (w.formats.cache.quantised()) formats += ", cache " + w.formats.cache.name();
  if (w.phase == Phase::decode) {
    return fmt::format("decode, batch {}, {} new token{} against a cache of {}, {}{}", w.batch,
                       grouped(w.seq), w.seq == 1 ? "" : "s", grouped(w.context), name_of(w.dtype),
                       formats);
  }
  return fmt::format("{}, batch {}, {} token{}, {}{}", name_of(w.phase), w.batch, grouped(w.seq),
                     w.seq == 1 ? "" : "s", name_of(w.dtype), formats);
}

}  // namespace fuseline
