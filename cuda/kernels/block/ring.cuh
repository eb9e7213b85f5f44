// The ring of slices in shared memory, and the two warps that fill it. One brings weights and old
// keys and values, which nobody writes during the launch, so it never waits for a counter and runs
// ahead across instructions. The other brings the operand of products, as soon as the counters of
// its columns are complete. A stage is full when both have delivered.
#pragma once

#include "../ptx/tma.cuh"
#include "instruction.cuh"
#include "waiting.cuh"

namespace fuseline::gpu {

FUSELINE_DEVICE const bf16* elements(const BlockMatrix& m, long long row) {
  return reinterpret_cast<const bf16*>(m.data) + row * m.ld;
}
FUSELINE_DEVICE bf16* writable(const BlockMatrix& m, long long row) {
  return reinterpret_cast<bf16*>(m.data) + row * m.ld;
}
FUSELINE_DEVICE float* floats(const BlockMatrix& m, long long row) {
  return reinterpret_cast<float*>(m.data) + row * m.ld;
}

FUSELINE_DEVICE bool is_product(int step) {
  const auto s = static_cast<BlockStep>(step);
  return s == BlockStep::qkv || s == BlockStep::out || s == BlockStep::gate_up ||
         s == BlockStep::down;
}
template <class Shape>
FUSELINE_DEVICE int product_columns(const BlockArgs& a, int step) {
  const auto s = static_cast<BlockStep>(step);
  if (s == BlockStep::out) return a.kv_heads * Shape::group * Shape::width;
  return s == BlockStep::down ? a.inner : a.model;
}
FUSELINE_DEVICE const BlockMap& weight_of(const BlockArgs& a, int step) {
  const auto s = static_cast<BlockStep>(step);
  if (s == BlockStep::qkv) return a.w_qkv;
  if (s == BlockStep::out) return a.w_o;
  return s == BlockStep::gate_up ? a.w_gate_up : a.w_down;
}
FUSELINE_DEVICE const BlockMap& operand_of(const BlockArgs& a, int step) {
  const auto s = static_cast<BlockStep>(step);
  if (s == BlockStep::qkv) return a.x_slice;
  if (s == BlockStep::out) return a.attn_slice;
  return s == BlockStep::gate_up ? a.h_slice : a.act_slice;
}

// Stages of boxes, then the operands of all stages. Barriers, 8 bytes each: boxes are there,
// operands are there, empty.
template <class Shape>
struct Ring {
  u32 stages;  // addresses in shared memory
  u32 barriers;
  [[nodiscard]] FUSELINE_DEVICE u32 stage(int s) const {
    return stages + static_cast<u32>(s * Shape::stage_bytes);
  }
  [[nodiscard]] FUSELINE_DEVICE u32 operand(int s) const {
    return stages + static_cast<u32>(Shape::stages * Shape::stage_bytes + s * Shape::operand_bytes);
  }
  [[nodiscard]] FUSELINE_DEVICE u32 boxes_full(int s) const {
    return barriers + static_cast<u32>(8 * s);
  }
  [[nodiscard]] FUSELINE_DEVICE u32 operand_full(int s) const {
    return barriers + static_cast<u32>(8 * (Shape::stages + s));
  }
  [[nodiscard]] FUSELINE_DEVICE u32 empty(int s) const {
    return barriers + static_cast<u32>(8 * (2 * Shape::stages + s));
  }
  FUSELINE_DEVICE void wait_until_full(int s, u32 phase) const {
    mbarrier_wait(boxes_full(s), phase);
    mbarrier_wait(operand_full(s), phase);
  }
};

template <class Shape>
struct RingPlace {
  int stage = 0;
  u32 phase = 0;
  FUSELINE_DEVICE void advance() {
    if (++stage == Shape::stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// The slices of an SM's instructions, in order.
template <class Shape>
struct Slices {
  const BlockArgs& args;
  const BlockInstruction* list;
  int count;
  int i = 0, at = 0;  // instruction, and its first column or key

  FUSELINE_DEVICE Slices(const BlockArgs& a, const BlockInstruction* l, int n)
      : args(a), list(l), count(n) {
    skip();
  }
  [[nodiscard]] FUSELINE_DEVICE bool done() const { return i >= count; }
  [[nodiscard]] FUSELINE_DEVICE int extent() const {
    const BlockInstruction& in = list[i];
    if (is_product(in.step)) return product_columns<Shape>(args, in.step);
    return static_cast<BlockStep>(in.step) == BlockStep::attend ? in.count : 0;
  }
  [[nodiscard]] FUSELINE_DEVICE int size() const {
    return is_product(list[i].step) ? block_slice_columns : Shape::keys;
  }
  [[nodiscard]] FUSELINE_DEVICE int length() const { return min_of(size(), extent() - at); }
  FUSELINE_DEVICE void next() {
    at += size();
    if (at >= extent()) {
      ++i;
      at = 0;
      skip();
    }
  }

 private:
  FUSELINE_DEVICE void skip() {
    while (i < count && extent() == 0) ++i;
  }
};

FUSELINE_DEVICE const TmaMap& map_of(const BlockMap& map) {
  return reinterpret_cast<const TmaMap&>(map);
}
FUSELINE_DEVICE void load_box(u32 to, const BlockMap& map, int column, int row, u32 barrier) {
  tma_load(to, map_of(map), column, row, barrier);
}
// 512 columns from `column`, a multiple of 64, onward, of as many rows as the map's box has.
// Columns behind the matrix's last 64 are zeros, and they count as bytes too.
FUSELINE_DEVICE void load_slice(u32 to, const BlockMap& map, int column, int row, u32 barrier) {
  tma_load(to, map_of(map), 0, row, column / block_box_columns, 0, barrier);
}

// Few slices are under way at once: what arrives at an SM arrives in the order in which it was
// asked for, so that a counter or an operand that is asked for now comes behind all boxes that are
// under way. The copy engine takes tens of nanoseconds for every copy that it is given, so few
// large ones keep it ahead: one for a slice of weights, a box a lane for keys and values. Rows
// behind the matrix are zeros; rows behind an instruction's own are somebody else's, and nobody
// uses them.
template <class Shape>
FUSELINE_DEVICE void load_weights(const BlockArgs& args, const Ring<Shape>& ring,
                                  const BlockInstruction* list, int count) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  RingPlace<Shape> place, oldest;  // oldest: of those under way
  int under_way = 0;
  for (Slices<Shape> s(args, list, count); !s.done(); s.next()) {
    const BlockInstruction& in = list[s.i];
    const int n = s.length();
    const bool product = is_product(in.step);
    const int row_boxes = ceil_div(n, block_box_keys);
    const int bytes = product ? 2 * block_slice_columns * in.box_rows
                              : 2 * Shape::boxes_of_row * row_boxes * block_box_bytes;
    mbarrier_wait(ring.empty(place.stage), place.phase ^ 1);
    if (under_way == block_under_way) {
      mbarrier_wait(ring.boxes_full(oldest.stage), oldest.phase);
      oldest.advance();
    } else {
      ++under_way;
    }
    const u32 full = ring.boxes_full(place.stage);
    const u32 to = ring.stage(place.stage) + static_cast<u32>(lane * block_box_bytes);
    if (lane == 0) mbarrier_arrive_expect(full, static_cast<u32>(bytes));
    __syncwarp();
    if (product) {
      if (lane == 0) load_slice(to, weight_of(args, in.step), s.at, in.begin, full);
    } else if (lane < Shape::boxes) {
      const int box = lane % Shape::key_boxes;
      const int row_box = box / Shape::boxes_of_row, column_box = box % Shape::boxes_of_row;
      const int row = in.head / args.kv_heads * args.context + in.begin + s.at;
      const int column = in.head % args.kv_heads * Shape::width;
      if (row_box < row_boxes)
        load_box(to, lane < Shape::key_boxes ? args.old_k : args.old_v,
                 column + column_box * block_box_columns, row + row_box * block_box_keys, full);
    }
    place.advance();
  }
}

// The copy engine reads a map from memory when it first needs it. Here it reads all of them while
// the thread block waits for its instructions.
FUSELINE_DEVICE void prefetch_maps(const BlockArgs& args) {
  tma_prefetch_map(map_of(args.w_qkv));
  tma_prefetch_map(map_of(args.x_slice));
  tma_prefetch_map(map_of(args.old_k));
  tma_prefetch_map(map_of(args.old_v));
  tma_prefetch_map(map_of(args.w_o));
  tma_prefetch_map(map_of(args.attn_slice));
  tma_prefetch_map(map_of(args.w_gate_up));
  tma_prefetch_map(map_of(args.h_slice));
  tma_prefetch_map(map_of(args.w_down));
  tma_prefetch_map(map_of(args.act_slice));
}

// One copy a slice for all sequences: with a copy for each of eight, the engine would be as busy
// with operands as with weights, which wait behind them.
template <class Shape>
FUSELINE_DEVICE void load_operands(const BlockArgs& args, const BlockCounters& counters,
                                   const Ring<Shape>& ring, const BlockInstruction* list,
                                   int count) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  RingPlace<Shape> place;
  int first = -1;  // of the range whose complete counters are known
  u32 known = 0;
  for (Slices<Shape> s(args, list, count); !s.done(); s.next()) {
    const BlockInstruction& in = list[s.i];
    mbarrier_wait(ring.empty(place.stage), place.phase ^ 1);
    const u32 full = ring.operand_full(place.stage);
    if (!is_product(in.step)) {
      if (lane == 0) mbarrier_arrive(full);
    } else {
      if (in.operand_count > 0) {
        if (first != in.operand_first) known = 0;
        first = in.operand_first;
        const int from = s.at / in.operand_columns;
        const int to = (s.at + s.length() - 1) / in.operand_columns;
        const u32 wanted = (0xffffffffU >> (31 - (to - from))) << from;
        Patience patience;
        bool new_ones = false;
        while ((known & wanted) != wanted) {
          known = counters.complete(in.operand_first, in.operand_count);
          new_ones = true;
          patience.lose();
        }
        // What others stored by ordinary stores is read by the copy engine.
        if (new_ones) fence_proxies();
      }
      if (lane == 0) {
        mbarrier_arrive_expect(full, static_cast<u32>(Shape::operand_bytes));
        load_slice(ring.operand(place.stage), operand_of(args, in.step), s.at, 0, full);
      }
    }
    place.advance();
  }
}

}  // namespace fuseline::gpu
