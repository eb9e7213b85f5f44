// Decode blocks of the LLaMA family as instructions, for tests.
#pragma once

#include <string>
#include <variant>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/instructions/instructions.h"
#include "model/policy.h"
#include "tests/model/tiny_models.h"

namespace fuseline::test {

struct LlamaSizes {
  std::int64_t D = 20, F = 14, H = 4, Hkv = 2, d = 6;
  std::int64_t batch = 3, context = 11;
};

inline ModelConfig llama_of(const LlamaSizes& s) {
  ModelConfig c = tiny_llama();
  c.D = s.D;
  c.F = s.F;
  c.H = s.H;
  c.Hkv = s.Hkv;
  c.d = s.d;
  return c;
}

inline Workload decode_of(const LlamaSizes& s) {
  Workload work;
  work.phase = Phase::decode;
  work.batch = s.batch;
  work.seq = 1;
  work.context = s.context;
  return work;
}

inline DecodeBlock block_of(const Plan& plan) {
  auto read = decode_block(plan.graph, plan.kernels.front());
  if (const auto* why = std::get_if<std::string>(&read)) throw InternalError(*why);
  return std::get<DecodeBlock>(read);
}

}  // namespace fuseline::test
