// Small blocks with experts in odd sizes.
#pragma once

#include "model/config/model_files.h"

namespace fuseline::test {

// 5 experts, 3 of them for each token; widths that are multiples of 8 and of no tile.
inline ModelConfig small_experts() {
  ModelConfig config = load_model("mixtral-8x7b");
  config.D = 200;
  config.F = 136;
  config.H = 6;
  config.Hkv = 2;
  config.d = 32;
  config.V = 300;
  config.values["E"] = std::int64_t{5};
  config.values["k"] = std::int64_t{3};
  return config;
}

// The same with a latent cache, and experts that all tokens see.
inline ModelConfig small_latent_experts() {
  ModelConfig config = load_model("deepseek-v2-lite");
  config.D = 200;
  config.F = 72;
  config.H = 3;
  config.V = 300;
  config.values["dn"] = std::int64_t{24};
  config.values["dr"] = std::int64_t{16};
  config.values["dv"] = std::int64_t{24};
  config.values["rkv"] = std::int64_t{40};
  ParameterValues& experts = config.blocks.front().values;
  experts["E"] = std::int64_t{5};
  experts["k"] = std::int64_t{3};
  return config;
}

}  // namespace fuseline::test
