// What is asked for: a model's dimensions, and the work to do with it. Shape letters as in docs: B
// batch, T query tokens, S context tokens, M = B·T rows, D width, F feed-forward width, H query
// heads, Hkv key/value heads, d head width, V vocabulary.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "model/cache_formats/stored_cache.h"
#include "model/config/dtype.h"
#include "model/config/routing_loads.h"
#include "model/formats/stored_weight.h"

namespace fuseline {

class BlockText;  // model/blocks/block_text.h

enum class Phase : std::uint8_t { forward, train, decode };

// Largest width, head count, vocabulary or token count that input may ask for.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostLayers = 10'000;
// Largest number of cached tokens over all sequences, B·S.
inline constexpr std::int64_t kLargestCache = std::int64_t{1} << 28;

// What a model gives the parameters of its blocks: whole numbers, fractions, yes or no.
using ParameterValue = std::variant<std::int64_t, double, bool>;
using ParameterValues = std::map<std::string, ParameterValue>;

// The number formats of what is not in the workload's type.
struct Formats {
  StoredWeight weights{};  // of every `linear`
  StoredCache cache{};     // of every `cache`
  // Of what every `linear` multiplies its weight by; null: numbers of the workload's type.
  StoredWeight activations{};

  friend bool operator==(const Formats&, const Formats&) = default;
};

// A block and how many layers are of it.
struct BlockUse {
  std::string block;         // a name of scenarios/blocks, or a path
  std::int64_t layers = 0;   // 0: all that the model has
  std::string name{};        // "local"; empty: as the block
  ParameterValues values{};  // what differs from the model's
  bool decodes = true;       // whether generating a token runs these layers
  // Of a stack beside the first one, as an encoder is: the size that says how many tokens a
  // sequence has there ("source_tokens"), and the blocks before and behind its layers.
  std::string tokens{}, entry{}, exit{};
  std::shared_ptr<const BlockText> text{};  // read already; null: found by its name

  [[nodiscard]] const std::string& label() const { return name.empty() ? block : name; }
};

// A model: sizes, and the blocks that its layers are. Letters that a model's blocks do not have are
// 0 here; those that only some blocks have are in `values`.
struct ModelConfig {
  std::string name;
  std::string title;
  std::vector<BlockUse> blocks{{.block = "llama"}};  // the one that is meant by "the block" first
  std::string entry = "embed";                       // block before the layers; empty: none
  std::string exit = "head_rms_norm";                // and behind them
  std::int64_t layers = 0;
  std::int64_t D = 0;
  std::int64_t F = 0;
  std::int64_t H = 0;
  std::int64_t Hkv = 0;
  std::int64_t d = 0;
  std::int64_t V = 0;
  std::int64_t max_positions = 0;
  std::int64_t sliding_window = 0;  // tokens each query sees; 0 = all
  // Edge of the square of pixels that a token of an image model stands for; 0: tokens are no image.
  std::int64_t pixels_per_token = 0;
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  ParameterValues values{};  // of parameters that have no field here
  Formats formats{};         // in which its file says that it is stored

  // Whether all its layers are of that shipped block.
  [[nodiscard]] bool is_all(const std::string& block) const {
    return blocks.size() == 1 && blocks.front().block == block;
  }
  // Layers that are of `use`, one of `blocks`.
  [[nodiscard]] std::int64_t layers_of(const BlockUse& use) const {
    return use.layers > 0 ? use.layers : layers;
  }
  [[nodiscard]] std::int64_t qkv_width() const { return (H + 2 * Hkv) * d; }
};

struct Workload {
  Phase phase = Phase::forward;
  std::int64_t batch = 1;    // B
  std::int64_t seq = 2048;   // T, new tokens per sequence
  std::int64_t context = 0;  // S, decode only: tokens in the cache, the new ones included
  Dtype dtype = Dtype::bf16;
  Formats formats{};
  RoutingLoads routing{};  // of tokens to experts

  [[nodiscard]] std::int64_t rows() const { return batch * seq; }
  [[nodiscard]] std::int64_t kv_tokens() const { return phase == Phase::decode ? context : seq; }
};

// Throws InputError unless every dimension is in [1, 2^24] (heads, widths, vocabulary, positions;
// layers up to 10,000), the query, key and value columns together too, Hkv divides H, and the kinds
// of layers add up. Letters that the model does not give (0) are left to its blocks. `file` goes
// into the message.
void check_config(const ModelConfig& config, const std::string& file);

// Throws InputError for sizes out of range (B, T, S and B·T up to 2^24, B·S up to 2^28), for a
// context shorter than the new tokens, for a context outside decode, for training with weights or a
// cache in few bits, for activations whose format does not fit that of the weights, and when B·H·T
// × S scores overflow 64-bit byte counts. Positions beyond max_positions are allowed: they change
// no shape.
void check_workload(const Workload& workload, const ModelConfig& config);

const char* name_of(Phase);

// Parses the words of the command line; InputError with the nearest name otherwise.
Phase parse_phase(const std::string& text, const std::string& field);
Dtype parse_dtype(const std::string& text, const std::string& field);

// The number format of the weights, or the workload's type: "int4:64", "bf16".
std::string weights_text(const Workload& workload);
// That of keys and values in the cache: "int8", "bf16".
std::string cache_text(const Workload& workload);
// That of what is multiplied by the weights: "fp8", "bf16".
std::string activations_text(const Workload& workload);

// "forward, batch 1, 2,048 tokens, bf16"; "..., bf16, weights int4, cache int8"
std::string describe(const Workload& workload);

}  // namespace fuseline
