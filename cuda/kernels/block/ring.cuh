// The ring of slices in shared memory, and the warps that fill it. Loaders bring weights and old
// keys and values, which nobody writes during the launch, so they never wait for a counter and run
// ahead across instructions. Another warp brings the operand of products, as soon as the counters
// of its columns are complete. A stage is full when all have delivered.
#pragma once

#include "../ptx/mbarrier.cuh"
#include "instruction.cuh"
#include "waiting.cuh"

namespace fuseline::gpu {

// Bytes that lie behind each other, a multiple of 16.
FUSELINE_DEVICE void bulk_load(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
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
FUSELINE_DEVICE const BlockMatrix& weight_of(const BlockArgs& a, int step) {
  const auto s = static_cast<BlockStep>(step);
  if (s == BlockStep::qkv) return a.w_qkv;
  if (s == BlockStep::out) return a.w_o;
  return s == BlockStep::gate_up ? a.w_gate_up : a.w_down;
}
FUSELINE_DEVICE const BlockMatrix& operand_of(const BlockArgs& a, int step) {
  const auto s = static_cast<BlockStep>(step);
  if (s == BlockStep::qkv) return a.x;
  if (s == BlockStep::out) return a.attn;
  return s == BlockStep::gate_up ? a.h : a.act;
}

// Barriers of the ring: full, then empty, 8 bytes each.
template <class Shape>
struct Ring {
  u32 stages;  // addresses in shared memory
  u32 barriers;
  [[nodiscard]] FUSELINE_DEVICE u32 stage(int s) const {
    return stages + static_cast<u32>(s * Shape::stage_bytes);
  }
  [[nodiscard]] FUSELINE_DEVICE u32 full(int s) const { return barriers + static_cast<u32>(8 * s); }
  [[nodiscard]] FUSELINE_DEVICE u32 empty(int s) const {
    return barriers + static_cast<u32>(8 * (Shape::stages + s));
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

// Calls f(place in the stage, source, bytes) for the rows of weights or of keys and values that
// this lane of the loader brings. A warp issues a copy in about 30 ns, whatever its size, and the
// slices of an SM have some thousands of rows, so that several warps share them.
template <class Shape, class F>
FUSELINE_DEVICE void for_each_row(const Slices<Shape>& s, int loader, F&& f) {
  const BlockInstruction& in = s.list[s.i];
  const int first = loader + block_loaders * static_cast<int>(threadIdx.x % 32);
  const int n = s.length();
  if (is_product(in.step)) {
    const BlockMatrix& w = weight_of(s.args, in.step);
    if (first < in.count)
      f(static_cast<u32>(first * Shape::pitch), elements(w, in.begin + first) + s.at,
        static_cast<u32>(2 * n));
    return;
  }
  const long long row =
      static_cast<long long>(in.head / s.args.kv_heads) * s.args.context + in.begin + s.at;
  const int col = in.head % s.args.kv_heads * Shape::width;
  FUSELINE_NO_UNROLL
  for (int r = first; r < n; r += 32 * block_loaders) {
    f(static_cast<u32>(r * Shape::key_pitch), elements(s.args.k, row + r) + col,
      static_cast<u32>(2 * Shape::width));
    f(static_cast<u32>((Shape::keys + r) * Shape::key_pitch), elements(s.args.v, row + r) + col,
      static_cast<u32>(2 * Shape::width));
  }
}

// The first loader announces all bytes of a slice. A phase cannot end before that, even when other
// loaders' bytes have come, since that arrival is missing.
template <class Shape>
FUSELINE_DEVICE void load_weights(const BlockArgs& args, const Ring<Shape>& ring,
                                  const BlockInstruction* list, int count, int loader) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  RingPlace<Shape> place;
  for (Slices<Shape> s(args, list, count); !s.done(); s.next()) {
    const BlockInstruction& in = list[s.i];
    mbarrier_wait(ring.empty(place.stage), place.phase ^ 1);
    const u32 full = ring.full(place.stage), stage = ring.stage(place.stage);
    const int elements_of_slice =
        is_product(in.step) ? in.count * s.length() : 2 * Shape::width * s.length();
    if (loader == 0 && lane == 0)
      mbarrier_arrive_expect(full, static_cast<u32>(2 * elements_of_slice));
    __syncwarp();
    for_each_row(s, loader, [&](u32 to, const bf16* from, u32 bytes) {
      bulk_load(stage + to, from, bytes, full);
    });
    place.advance();
  }
}

template <class Shape>
FUSELINE_DEVICE void load_operands(const BlockArgs& args, const Ring<Shape>& ring,
                                   const BlockInstruction* list, int count) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const BlockCounters counters(args);
  RingPlace<Shape> place;
  int first = -1;  // of the range whose complete counters are known
  u32 known = 0;
  for (Slices<Shape> s(args, list, count); !s.done(); s.next()) {
    const BlockInstruction& in = list[s.i];
    mbarrier_wait(ring.empty(place.stage), place.phase ^ 1);
    const u32 full = ring.full(place.stage);
    if (!is_product(in.step)) {
      if (lane == 0) mbarrier_arrive(full);
    } else {
      const int n = s.length();
      if (in.operand_count > 0) {
        if (first != in.operand_first) known = 0;
        first = in.operand_first;
        const int from = s.at / in.operand_columns, to = (s.at + n - 1) / in.operand_columns;
        const u32 wanted = (0xffffffffU >> (31 - (to - from))) << from;
        Patience patience;
        bool new_ones = false;
        while ((known & wanted) != wanted) {
          known = counters.complete(in.operand_first, in.operand_count);
          new_ones = true;
          patience.lose();
        }
        if (new_ones) fence_proxies();
      }
      if (lane == 0) mbarrier_arrive_expect(full, static_cast<u32>(2 * Shape::batch * n));
      __syncwarp();
      if (lane < Shape::batch)
        bulk_load(
            ring.stage(place.stage) + static_cast<u32>(Shape::weight_bytes + lane * Shape::pitch),
            elements(operand_of(args, in.step), lane) + s.at, static_cast<u32>(2 * n), full);
    }
    place.advance();
  }
}

}  // namespace fuseline::gpu
