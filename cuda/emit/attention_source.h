// An attention program as CUDA sources. One program takes one launch on the way forward (two, where
// RoPE or the cache write belong to it: kernels/attention/prologue.cuh), two or three for
// gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "model/plan.h"

namespace fuseline::cuda {

// Files of cuda/kernels/attention, and which of their results.
enum class AttentionPart : std::uint8_t {
  prologue,  // RoPE and the cache's new rows
  forward_sm90,
  forward_generic,
  decode,
  wide,          // heads whose values are columns of their keys
  wide_join,     // of its splits; left out where there is one
  keys_sm90,     // gradients of keys and values
  queries_sm90,  // gradient of queries
  queries_generic,
  keys_generic,
  values_generic,
};

struct AttentionKernelSource {
  AttentionPart part = AttentionPart::forward_generic;
  Source source;
  std::string function;  // the extern "C" kernel; FUNCTION_shared_bytes is a constant beside it
};

// Queries that share a key head, of a tile of the kernel for wide heads.
int wide_rows(const AttentionShape& shape, SmTarget architecture);

// In the order of their launches. MissingError: no kernel of ours does what the program asks for
// (head widths that are no multiple of 16, or above 256 unless one head of keys has the values in
// its columns; 32-bit operands; primitives behind attention other than stores).
std::vector<AttentionKernelSource> attention_sources(const Graph& graph, const Program& program,
                                                     SmTarget architecture,
                                                     const std::string& title);

// One operand on its way through the prologue: the columns of `heads` heads.
struct AttentionMove {
  Operand from{};
  // Where it goes: a tensor, or the value that the mainloop takes in its operand's place.
  bool stored = false;
  Operand to{};
  Value value = -1;
  bool rotated = false;
  std::int64_t distance = 0;  // of a pair's columns
  Operand cos{}, sin{};
};
// MissingError: the prologue is more than RoPE and stores.
std::vector<AttentionMove> prologue_moves(const Graph& graph, const Program& program);

// The operand that a result of the mainloop is stored to. MissingError: it is changed on its way.
Operand stored_as(const Graph& graph, const Program& program, Value result);

}  // namespace fuseline::cuda
