// What the kernel of a whole block is given: instructions of every SM, and where tensors lie. The
// host fills in the same structs (cuda/run/block_launch.cpp), so that they stand here once.
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu {

// In the order of model/instructions/instructions.h.
enum class BlockStep : int {
  finish_norm1,
  qkv,
  attend,
  join,
  out,
  finish_norm2,
  gate_up,
  down,
  finish_stats,
};

// 64 bytes. A counter of -1 is none.
struct alignas(16) BlockInstruction {
  int step;
  int begin, count;
  int head;  // attend, join: sequence · Hkv + key head
  int slot, slots;
  int operand_first, operand_count, operand_columns;
  int waits[3];
  int adds[2];
  int unused[2];
};

struct BlockMatrix {
  u64 data;
  long long ld;  // elements from row to row
};

constexpr int block_tile_rows = 32;         // most rows of weights that an instruction has
constexpr int block_slice_columns = 512;    // of weights and operand in a stage of the ring
constexpr int block_slice_elements = 8192;  // of keys in a stage
constexpr int block_most_instructions = 40;
constexpr int block_consumers = 8;  // warps
constexpr int block_loaders = 3;    // warps that bring weights, keys and values
constexpr int block_threads = 32 * (block_consumers + block_loaders + 1);
constexpr int block_most_waits = 32;

struct BlockArgs {
  u64 instructions;  // [SMs, block_most_instructions]
  u64 counts;        // of instructions, int by SM
  u64 goals;         // int by counter
  u64 counters;      // u32, 0 before and after every launch, and one more: thread blocks at the end
  u64 record;        // u64 [SMs, block_most_instructions, 3]: begin, first data, end; or null
  int counter_count;
  int kv_heads, context, model, inner;
  float scale;  // of scores, in powers of 2
  float eps1, eps2;
  int sums_groups;                                // groups of 128 columns of h and y
  u64 first_sum;                                  // int [groups + 1]
  u64 h_sums, y_sums;                             // float [slots, B]
  u64 partial, partial_weight;                    // float [slots, G, d] and float [slots, G, 2]
  u64 cos, sin;                                   // bf16 [d]
  BlockMatrix x, q, k, v, attn, h, act, y;        // bf16
  BlockMatrix w_qkv, w_o, w_gate_up, w_down;      // bf16
  BlockMatrix x_stats, h_stats, y_stats, r1, r2;  // fp32
};

// Shared memory of a kernel for B sequences, heads of d columns and G queries of a key head. Rows
// of a stage have 16 bytes between them, so that the 8 rows of a matrix lie in different banks.
template <int batch_, int width_, int group_>
struct BlockShape {
  static constexpr int batch = batch_, width = width_, group = group_;
  static constexpr int keys = block_slice_elements / width;
  static constexpr int pitch = 2 * block_slice_columns + 16;
  static constexpr int key_pitch = 2 * width + 16;
  static constexpr int weight_bytes = block_tile_rows * pitch;
  static constexpr int stage_bytes = max_of(weight_bytes + batch * pitch, 2 * keys * key_pitch);
  // Partial sums of the warps: two areas that take turns, of rows of 32 with 8 between them.
  static constexpr int sum_pitch = block_tile_rows + 8;
  static constexpr int area_floats = block_consumers * 8 * sum_pitch;
  static constexpr int fixed_bytes = 2 * 4 * area_floats + 64 * block_most_instructions + 256;
  static constexpr int most_shared = 232448;
  static constexpr int stages = min_of(8, (most_shared - fixed_bytes) / stage_bytes);
  static constexpr int shared_bytes = stages * stage_bytes + fixed_bytes;
  static_assert(batch >= 1 && batch <= 8 && group <= 8 && width % 64 == 0);
  static_assert(group * width * block_consumers + 16 * block_consumers <= 2 * area_floats,
                "partial softmaxes of all warps fit where sums lie");
};

}  // namespace fuseline::gpu
