// Small sizes for every letter that a shipped block has, in two sets, so that a swapped letter
// shows.
#pragma once

#include <string>

#include "sim/executor/small_blocks.h"
#include "tests/model/tiny_models.h"

namespace fuseline::test {

inline ModelConfig sized(const std::string& block, bool other) {
  ModelConfig c = tiny_llama();
  c.blocks = {{.block = block}};
  c.D = other ? 36 : 24;
  c.F = other ? 28 : 40;
  c.H = other ? 2 : 4;
  c.Hkv = other ? 1 : 2;
  c.d = other ? 12 : 8;
  c.V = 31;
  c.max_positions = 64;
  c.norm_eps = 1e-5;
  c.sliding_window = other ? 5 : 0;
  c.qkv_bias = c.out_bias = c.mlp_bias = other;
  c.values = {{"text_tokens", std::int64_t{3}},
              {"qk_norm", other},
              {"biases", other},
              {"exact_gelu", other},
              {"E", std::int64_t{other && block != "moe" ? 0 : 5}},
              {"k", std::int64_t{other ? 3 : 2}},
              {"all_scores", other},
              {"sigmoid_scores", !other},
              {"factor", other ? 1.0 : 2.5},
              {"N", std::int64_t{other ? 5 : 4}},
              {"P", std::int64_t{other ? 12 : 8}},
              {"groups", std::int64_t{other ? 2 : 1}},
              {"rank", std::int64_t{4}},
              {"chunk", std::int64_t{8}},
              {"attends", other},
              {"dn", std::int64_t{other ? 6 : 10}},
              {"dr", std::int64_t{4}},
              {"dv", std::int64_t{other ? 10 : 6}},
              {"rkv", std::int64_t{14}},
              {"rq", std::int64_t{other ? 18 : 0}},
              {"shared", std::int64_t{2}},
              {"source_tokens", std::int64_t{7}},
              {"patch_numbers", std::int64_t{other ? 12 : 20}},
              {"classes", std::int64_t{other ? 5 : 9}},
              {"text_width", std::int64_t{other ? 534 : 38}},
              {"pooled_width", std::int64_t{other ? 26 : 18}},
              {"time_width", std::int64_t{other ? 12 : 16}},
              {"image_positions", std::int64_t{other ? 17 : 40}}};
  if (other) c.values["adjacent_pairs"] = true;
  c.values["parallel"] = !other;
  if (other) c.values["softcap"] = 20.0;
  if (other) c.values["rotated"] = std::int64_t{8};
  return c;
}

// Such that the rows of every product are whole groups of 128 columns.
inline ModelConfig sized_in_groups(const std::string& block) {
  ModelConfig c = executor::small_model(block);
  c.values["text_width"] = std::int64_t{256};
  c.values["pooled_width"] = std::int64_t{128};
  c.values["time_width"] = std::int64_t{128};
  c.values["image_positions"] = std::int64_t{40};
  return c;
}

// These see all tokens at once and keep no cache.
inline bool refuses_decode(const std::string& block) {
  return block == "bert" || block == "encoder" || block == "mmdit" || block == "t5_encoder";
}

// What stands around the layers is planned without what a layer before it would leave.
inline bool is_end(const std::string& block) {
  return block.starts_with("embed") || block.starts_with("head") || block.starts_with("final");
}

}  // namespace fuseline::test
