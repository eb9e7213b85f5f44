// What a config.json of one architecture says: a file of hf_families/ describes one.
#pragma once

#include <span>
#include <utility>

#include "model/config/hf_fields.h"
#include "model/config/hf_refused.h"

namespace fuseline {

// One of our fields as the files of the architecture spell it: {"D", "n_embd"}.
using HfSpelling = std::pair<const char*, const char*>;

// Of the files that are like LLaMA's.
inline constexpr HfSpelling kLlamaSpellings[] = {{"layers", "num_hidden_layers"},
                                                 {"D", "hidden_size"},
                                                 {"F", "intermediate_size"},
                                                 {"H", "num_attention_heads"},
                                                 {"Hkv", "num_key_value_heads"},
                                                 {"d", "head_dim"},
                                                 {"V", "vocab_size"},
                                                 {"max_positions", "max_position_embeddings"},
                                                 {"norm_eps", "rms_norm_eps"}};
// Of those that are like GPT-2's.
inline constexpr HfSpelling kGptSpellings[] = {{"layers", "n_layer"},
                                               {"D", "n_embd"},
                                               {"F", "n_inner"},
                                               {"H", "n_head"},
                                               {"Hkv", "n_head"},
                                               {"d", "n_head"},
                                               {"V", "vocab_size"},
                                               {"max_positions", "n_positions"},
                                               {"norm_eps", "layer_norm_epsilon"}};

struct HfFamily {
  const char* model_type;    // of a diffusers file: what takes its place
  const char* architecture;  // class names start with it, followed by For..., Model or LMHead
  ModelConfig (*read)(const HfFields& fields);
  std::span<const HfSpelling> spellings = kLlamaSpellings;
  // Fields that all other families refuse, and read() reads or the architecture ignores.
  std::span<const char* const> reads{};
  // Fields that say something the architecture does not have, or has always.
  std::span<const HfRefused> refused{};
  const char* positions = "rope";    // position_embedding_type
  const char* class_name = nullptr;  // _class_name of the diffusers library
};

}  // namespace fuseline
