// One launch as instructions: what each multiprocessor (SM) does, in order, what it waits for and
// what it tells the others. The simulator runs these arrays as events, the executor in random
// orders, and the GPU's kernel interprets them.
//
// A counter takes the place of a grid barrier. Instructions add to it when their results are in
// memory; it is complete when it has reached its goal, and only complete counters are waited for.
//
// An SM has two threads of work. Its loader runs ahead: it brings weights and old keys and values,
// which nobody writes, into a ring of slices, and then the first operand of products, slice by
// slice, as soon as the counters of its columns are complete. The consumer executes instructions in
// order; before it begins an instruction that is no product, it waits for `waits`. Each SM computes
// a norm's factors itself, from the sums of squares of all columns, which are there when the last
// slice of a product behind the norm is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/instructions/decode_block.h"

namespace fuseline {

enum class Step : std::uint8_t {
  finish_norm1,  // stores r = rsqrt(mean) of the entry's statistics, which nobody here reads
  qkv,           // rows of the product, scaled, rotated, stored as q, new keys or new values
  attend,        // some old keys of one head of one sequence: a partial softmax
  join,          // all partial softmaxes of a head, and the new key
  out,           // rows of the output projection, plus x, and their sums of squares
  finish_norm2,  // stores the second norm's r, and the sums of squares of h by columns of 128
  gate_up,       // pairs of rows, scaled, SwiGLU
  down,          // rows, plus h, and their sums of squares
  finish_stats,  // the sums of squares of y by columns of 128
};

// Counters first, first + 1, ...
struct CounterRange {
  std::int32_t first = 0, count = 0;
  friend bool operator==(const CounterRange&, const CounterRange&) = default;
};
inline constexpr std::int32_t no_counter = -1;

struct Instruction {
  Step step = Step::qkv;
  std::int64_t begin = 0, count = 0;       // rows of the weight, or keys of a sequence
  std::int64_t sequence = 0, kv_head = 0;  // attend, join
  // attend: the partial softmax that it leaves; join: those that it reads. out, down: the partial
  // sum that it leaves; one more where its rows lie in two groups of 128 columns.
  std::int64_t slot = 0, slots = 0;
  // Products: columns [c, ...) of the first operand wait for counter first + c / operand_columns.
  // finish_norm2 and finish_stats wait for all of them.
  CounterRange operand{};
  std::int64_t operand_columns = 1;
  std::array<std::int32_t, 3> waits{no_counter, no_counter, no_counter};
  std::array<std::int32_t, 2> adds{no_counter, no_counter};
  std::int64_t amount = 1;  // added to each of them
};

// What the kernel can hold, and the GPU's size.
struct InstructionSizes {
  int sms = 132;
  std::int64_t tile_rows = 32;         // most rows of a product's instruction
  std::int64_t slice_columns = 512;    // of an operand and its weights
  std::int64_t slice_elements = 8192;  // of the keys in a slice: 64 of 128 columns
  std::int64_t most_waits = 32;        // counters of a range
};

struct BlockCounter {
  std::string name;       // "attention of key head 3"
  std::int64_t goal = 0;  // what instructions add to it, all together
};

struct BlockInstructions {
  DecodeBlock block;
  InstructionSizes sizes;
  std::vector<std::vector<Instruction>> sms;  // by SM
  std::vector<BlockCounter> counters;
  std::int64_t attention_slots = 0;
  // Sums of squares of h, and of y: group g of 128 columns has slots [first[g], first[g + 1]).
  std::vector<std::int64_t> first_sum{};

  [[nodiscard]] std::int64_t keys_of_slice() const;
};

// Every SM gets equally many rows of each product and equally many old keys, as far as they divide.
BlockInstructions block_instructions(const DecodeBlock& block, const InstructionSizes& sizes = {});

const char* name_of(Step);
bool is_product(Step);
// The operand of a product, and its weight.
Operand operand_of(const DecodeBlock& block, Step step);
Operand weight_of(const DecodeBlock& block, Step step);

// "out rows 31 to 61 of w_o, slices wait for attention of key head 0 to 31; adds to ...".
std::string text_of(const BlockInstructions& all, const Instruction& instruction);

}  // namespace fuseline
