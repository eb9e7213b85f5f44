// What the kernel of a whole block is given: instructions of every SM, and where tensors lie. The
// host fills in the same structs (cuda/run/block_launch.cpp), so that they stand here once.
#pragma once

#include "../host_device.cuh"
#include "../swizzle.cuh"

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
  int box_rows;  // products: rows of a slice of weights, at least `count`
  int unused;
};

// A tensor map (ptx/tma.cuh).
struct alignas(64) BlockMap {
  u64 opaque[16];
};
struct BlockMatrix {
  u64 data;
  long long ld;  // elements from row to row
};

constexpr int block_tile_rows = 32;         // most rows of weights that an instruction has
constexpr int block_slice_columns = 512;    // of weights and operand in a stage of the ring
constexpr int block_slice_elements = 8192;  // of keys in a stage
constexpr int block_box_columns = 64;       // that lie together in a stage, 128 bytes
constexpr int block_box_keys = 32;          // rows of a box of keys or values
constexpr int block_box_bytes = 4096;       // of such a box
constexpr int block_most_instructions = 40;
constexpr int block_consumers = 8;  // warps
constexpr int block_finishers = 2;  // warps that end products
constexpr int block_threads = 32 * (block_consumers + block_finishers + 2);  // and two that load
constexpr int block_under_way = 2;  // stages that an SM has asked for and not got, at most
constexpr int block_most_waits = 32;

struct BlockArgs {
  // Of the four products: boxes of a slice's columns and the instructions' box_rows, or all rows.
  BlockMap w_qkv, w_o, w_gate_up, w_down;
  BlockMap x_slice, attn_slice, h_slice, act_slice;
  BlockMap old_k, old_v;  // boxes of 64 columns and 32 rows
  u64 instructions;       // [SMs, block_most_instructions]
  u64 counts;             // of instructions, int by SM
  u64 goals;              // int by counter
  // int [2, counters]. A counter begins at minus its goal, so that it is complete from 0 on.
  // Launches take turns with the two sets, and each makes the other one ready for the next launch.
  u64 counters;
  u64 begun;   // u32, thread blocks that began in the last two launches
  u64 record;  // u64 [SMs, block_most_instructions, 3]: begin, first data, end; or null
  int counter_count;
  int kv_heads, context, model, inner;
  float scale;  // of scores, in powers of 2
  float eps1, eps2;
  int sums_groups;                                // groups of 128 columns of h and y
  int sums;                                       // slots of sums of squares
  u64 first_sum;                                  // int [groups + 1]
  u64 h_sums, y_sums;                             // float [B, slots]: every SM reads whole rows
  u64 partial, partial_weight;                    // float [slots, G, d] and float [slots, G, 2]
  u64 cos, sin;                                   // bf16 [d]
  BlockMatrix x, q, k, v, attn, h, act, y;        // bf16
  BlockMatrix x_stats, h_stats, y_stats, r1, r2;  // fp32
};

// Where 16 bytes of a slice of weights or of the operand lie: chunk c of row r's columns 64 · group
// onward. One copy brings a slice of so many rows: 64 columns of all of them, then the next 64
// columns of all of them, swizzled as if all of these were rows of one matrix.
FUSELINE_HD constexpr u32 slice_place(int rows, int group, int r, int c) {
  return swizzle<2 * block_box_columns>(static_cast<u32>(group * rows + r), static_cast<u32>(c));
}

// Shared memory of a kernel for B sequences, heads of d columns and G queries of a key head. Boxes
// lie as the copy engine swizzles them: chunk c of 16 bytes in row r of a box stands at c ^ (r mod
// 8), so that 8 rows of a matrix lie in different banks.
template <int batch_, int width_, int group_>
struct BlockShape {
  static constexpr int batch = batch_, width = width_, group = group_;
  static constexpr int keys = block_slice_elements / width;
  static constexpr int key_boxes = 2 * block_slice_elements / block_box_bytes;  // in a stage
  static constexpr int boxes = 2 * key_boxes;                     // of keys and values in a stage
  static constexpr int boxes_of_row = width / block_box_columns;  // of a key
  static constexpr int stage_bytes = 2 * block_tile_rows * block_slice_columns;
  static constexpr int operand_bytes = batch * 2 * block_slice_columns;
  static constexpr int finisher_rows = ceil_div(batch, block_finishers);  // of one finisher
  // Partial sums of the warps: two areas that take turns, of rows of 32 with 8 between them.
  static constexpr int sum_pitch = block_tile_rows + 8;
  static constexpr int area_floats = block_consumers * 8 * sum_pitch;
  static constexpr int fixed_bytes = 2 * 4 * area_floats + 64 * block_most_instructions + 256;
  static constexpr int most_shared = 232448;
  static constexpr int stages =
      min_of(8, (most_shared - fixed_bytes) / (stage_bytes + operand_bytes));
  static constexpr int shared_bytes = stages * (stage_bytes + operand_bytes) + fixed_bytes;
  static_assert(block_under_way < stages, "or the loader would wait for what it has not asked for");
  static_assert(batch >= 1 && batch <= 8 && group <= 8 && width % 64 == 0);
  static_assert(keys / block_box_keys * boxes_of_row == key_boxes);
  static_assert(group * width * block_consumers + 16 * block_consumers <= 2 * area_floats,
                "partial softmaxes of all warps fit where sums lie");
  static_assert(boxes * block_box_bytes == stage_bytes);
};

}  // namespace fuseline::gpu
