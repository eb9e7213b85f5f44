// Small models for tests: odd sizes, so that a swapped dimension shows.
#pragma once

#include <random>

#include "model/config/config.h"

namespace fuseline::test {

inline ModelConfig llama2_7b() {
  ModelConfig c;
  c.name = "llama2-7b";
  c.layers = 32;
  c.D = 4096;
  c.F = 11008;
  c.H = c.Hkv = 32;
  c.d = 128;
  c.V = 32000;
  c.max_positions = 4096;
  return c;
}

inline ModelConfig gpt2_xl() {
  ModelConfig c;
  c.name = "gpt2-xl";
  c.blocks = {{.block = "gpt"}};
  c.entry = "embed_positions";
  c.exit = "head_layer_norm";
  c.layers = 48;
  c.D = 1600;
  c.F = 6400;
  c.H = c.Hkv = 25;
  c.d = 64;
  c.V = 50257;
  c.max_positions = 1024;
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.tied_embeddings = true;
  return c;
}

// Grouped queries: H 4 over Hkv 2, d 6, D 20 (not H·d), F 14.
inline ModelConfig tiny_llama() {
  ModelConfig c = llama2_7b();
  c.name = "tiny";
  c.D = 20;
  c.F = 14;
  c.H = 4;
  c.Hkv = 2;
  c.d = 6;
  c.V = 31;
  return c;
}

inline ModelConfig tiny_gpt() {
  ModelConfig c = gpt2_xl();
  c.name = "tiny-gpt";
  c.D = 15;
  c.F = 22;
  c.H = c.Hkv = 3;
  c.d = 5;
  c.V = 31;
  c.max_positions = 16;
  return c;
}

inline std::int64_t pick(std::mt19937& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
}

inline ModelConfig random_model(std::mt19937& random) {
  ModelConfig c = random() % 2 == 0 ? tiny_llama() : tiny_gpt();
  c.D = pick(random, 3, 25);
  c.F = pick(random, 2, 19);
  c.Hkv = pick(random, 1, 3);
  c.H = c.is_all("gpt") ? c.Hkv : c.Hkv * pick(random, 1, 3);
  c.d = 2 * pick(random, 1, 4);
  c.qkv_bias = random() % 2 == 0;
  c.out_bias = random() % 2 == 0;
  c.mlp_bias = random() % 2 == 0;
  c.sliding_window = random() % 3 == 0 ? pick(random, 1, 6) : 0;
  return c;
}

inline Workload random_work(std::mt19937& random) {
  Workload w;
  w.batch = pick(random, 1, 3);
  w.seq = pick(random, 1, 7);
  if (random() % 2 == 0) {
    w.phase = Phase::decode;
    w.seq = pick(random, 1, 3);
    w.context = w.seq + pick(random, 0, 9);
  }
  return w;
}

inline Workload forward(std::int64_t batch, std::int64_t seq) {
  return {.phase = Phase::forward, .batch = batch, .seq = seq};
}

inline Workload train(std::int64_t batch, std::int64_t seq) {
  return {.phase = Phase::train, .batch = batch, .seq = seq};
}

inline Workload decode(std::int64_t batch, std::int64_t seq, std::int64_t context) {
  return {.phase = Phase::decode, .batch = batch, .seq = seq, .context = context};
}

}  // namespace fuseline::test
