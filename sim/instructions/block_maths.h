// What instructions compute, in fp32, on the tensors of one plan.
#pragma once

#include <cstdint>
#include <vector>

#include "model/instructions/instructions.h"
#include "sim/executor/memory.h"
#include "sim/instructions/happened_before.h"

namespace fuseline::executor {

// A product's operand of one slice, [B, columns], or nothing for slices of keys.
using LoadedSlice = std::vector<float>;

// A consumer in the middle of an instruction.
struct Partial {
  std::vector<float> sums;       // of a product, [B, rows]
  std::vector<float> most, all;  // attend: the largest score and the sum, by query head
  std::vector<float> context;    // attend: [G, d]
};

class BlockMaths {
 public:
  BlockMaths(const BlockInstructions& all, Memory& memory, HappenedBefore& order);

  [[nodiscard]] std::int64_t slices(const Instruction& i) const;
  [[nodiscard]] LoadedSlice load(const Instruction& i, std::int64_t slice, std::size_t loader);
  void consume(const Instruction& i, std::int64_t slice, const LoadedSlice& operand, Partial& p,
               std::size_t consumer, std::size_t loader);
  // The instruction's results go to memory.
  void end(const Instruction& i, const Partial& p, std::size_t consumer);

 private:
  [[nodiscard]] float read(const Operand& o, std::int64_t row, std::int64_t col) const;
  void write(const Operand& o, std::int64_t row, std::int64_t col, float value);
  void end_product(const Instruction& i, const Partial& p, std::size_t consumer);
  void end_qkv(const Instruction& i, std::int64_t m, const float* row, std::size_t consumer);
  void end_rows(const Instruction& i, std::int64_t m, const float* row, std::size_t consumer);
  void attend(const Instruction& i, std::int64_t slice, Partial& p, std::size_t consumer,
              std::size_t loader);
  void join(const Instruction& i, std::size_t consumer);
  [[nodiscard]] float factor(Step step, std::int64_t m, std::size_t consumer);
  void finish(const Instruction& i, std::size_t consumer);
  [[nodiscard]] std::vector<float> query(std::int64_t sequence, std::int64_t head,
                                         std::size_t reader);

  const BlockInstructions& all_;
  const DecodeBlock& b_;
  Memory& memory_;
  HappenedBefore& order_;
  Elements q_, new_k_, new_v_, attn_, h_, act_, y_, r1_, r2_, h_sums_, y_sums_, partials_;
  std::vector<float> h_sum_, y_sum_;  // [slots, B]
  std::vector<Partial> partial_;      // by slot
};

}  // namespace fuseline::executor
