// Attention of one new token of each sequence. `attend`: the queries of one key head against some
// of its old keys, by online softmax; each warp takes 8 keys of every 64 and has a softmax of its
// own until the end, when they are joined in the order of the warps. `join`: the partial softmaxes
// of a head in their order, and the new key, which no slice has.
#pragma once

#include "../attention/online_softmax.cuh"
#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "product.cuh"

namespace fuseline::gpu {

// d[16, 8] += a[16, 8] b[8, 8]. The lower rows of a are zeros.
FUSELINE_DEVICE void mma_16x8x8(float (&d)[4], u32 a, u32 b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a), "r"(0U), "r"(b));
}

FUSELINE_DEVICE u32 load_word(const bf16* from) {
  return __ldcg(reinterpret_cast<const u32*>(from));
}

// One warp's softmax: of row lane / 4, the query, columns 2 (lane mod 4) and + 1 of every 8.
template <class Shape>
struct WarpSoftmax {
  u32 q[Shape::width / 16][2];
  float out[Shape::width / 8][4] = {};
  float most = minus_infinity, all = 0;

  FUSELINE_DEVICE void load_queries(const bf16* head, int lane) {
    const int g = lane / 4;
    FUSELINE_UNROLL
    for (int c = 0; c < Shape::width / 16; ++c) FUSELINE_UNROLL
    for (int half = 0; half < 2; ++half)
      q[c][half] = g < Shape::group
                       ? load_word(head + g * Shape::width + 16 * c + 8 * half + lane % 4 * 2)
                       : 0;
  }

  // 8 keys, of which `n` are there: the address of their first row in the first box of their
  // columns.
  FUSELINE_DEVICE void take(u32 keys, u32 values, int n, float scale, int lane) {
    const int r = lane % 8, chunk = lane / 8;
    // Columns 32 c onward: chunks of 16 bytes that the copy engine has swizzled.
    const auto place = [&](int c) {
      return static_cast<u32>(c / 2 * block_box_bytes + r * 128 + ((c % 2 * 4 + chunk) ^ r) * 16);
    };
    float s[4] = {};
    FUSELINE_UNROLL
    for (int c = 0; c < Shape::width / 32; ++c) {
      u32 k[4];
      ldmatrix_x4(k, keys + place(c));
      const u32 low[4] = {q[2 * c][0], 0, q[2 * c][1], 0};
      const u32 high[4] = {q[2 * c + 1][0], 0, q[2 * c + 1][1], 0};
      mma_16x8x16<bf16>(s, low, k[0], k[1]);
      mma_16x8x16<bf16>(s, high, k[2], k[3]);
    }
    const int key = lane % 4 * 2;
    const float s0 = key < n ? s[0] * scale : minus_infinity;
    const float s1 = key + 1 < n ? s[1] * scale : minus_infinity;
    const float now = fmaxf(most, quad_max(fmaxf(s0, s1)));
    const float old = power_of_2(most - now), p0 = power_of_2(s0 - now), p1 = power_of_2(s1 - now);
    most = now;
    all = all * old + quad_sum(p0 + p1);
    const u32 p = pack<bf16>(p0, p1);
    // What lies behind the last key need not be a number, and 0 times it need not be 0.
    const u32 there = (key < n ? 0xffffU : 0U) | (key + 1 < n ? 0xffff0000U : 0U);
    FUSELINE_UNROLL
    for (int c = 0; c < Shape::width / 32; ++c) {
      u32 v[4];
      ldmatrix_x4_transposed(v, values + place(c));
      FUSELINE_UNROLL
      for (int j = 0; j < 4; ++j) {
        out[4 * c + j][0] *= old;
        out[4 * c + j][1] *= old;
        mma_16x8x8(out[4 * c + j], p, v[j] & there);
      }
    }
  }
};

template <class Shape>
FUSELINE_DEVICE void run_attend(const BlockArgs& args, const BlockCounters& counters,
                                const Ring<Shape>& ring, RingPlace<Shape>& place,
                                const BlockInstruction& in, SumAreas<Shape>& areas, u64* record) {
  constexpr int together = 32 * block_consumers;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  counters.wait(in);
  WarpSoftmax<Shape> softmax;
  softmax.load_queries(elements(args.q, in.head / args.kv_heads) +
                           in.head % args.kv_heads * Shape::group * Shape::width,
                       lane);
  FUSELINE_NO_UNROLL
  for (int at = 0; at < in.count; at += Shape::keys) {
    ring.wait_until_full(place.stage, place.phase);
    if (at == 0 && record != nullptr) record[1] = nanoseconds();
    const u32 keys = ring.stage(place.stage);
    const u32 values = keys + static_cast<u32>(Shape::key_boxes * block_box_bytes);
    const int n = min_of(Shape::keys, in.count - at);
    FUSELINE_NO_UNROLL
    for (int k = 8 * warp; k < n; k += 8 * block_consumers) {
      const u32 first = static_cast<u32>(
          k / block_box_keys * Shape::boxes_of_row * block_box_bytes + k % block_box_keys * 128);
      softmax.take(keys + first, values + first, n - k, args.scale, lane);
    }
    __syncwarp();
    if (lane == 0) mbarrier_arrive(ring.empty(place.stage));
    place.advance();
  }

  // All warps are done with what lay in the areas before, and so are the finishers.
  float* area = areas.take_all();
  named_barrier(1, together);
  constexpr int elements_of_head = Shape::group * Shape::width;
  float* weights = area + block_consumers * elements_of_head;  // [warp, 8, 2]
  const int g = lane / 4;
  if (g < Shape::group) {
    float* to = area + warp * elements_of_head + g * Shape::width + lane % 4 * 2;
    FUSELINE_UNROLL
    for (int c = 0; c < Shape::width / 8; ++c)
      *reinterpret_cast<float2*>(to + 8 * c) = make_float2(softmax.out[c][0], softmax.out[c][1]);
    if (lane % 4 == 0)
      *reinterpret_cast<float2*>(weights + 2 * (Shape::group * warp + g)) =
          make_float2(softmax.most, softmax.all);
  }
  named_barrier(1, together);
  float* partial = reinterpret_cast<float*>(args.partial) + in.slot * elements_of_head;
  float2* partial_weight = reinterpret_cast<float2*>(args.partial_weight) + in.slot * Shape::group;
  for (int e = static_cast<int>(threadIdx.x); e < elements_of_head; e += together) {
    const int query = e / Shape::width;
    float most = minus_infinity;
    FUSELINE_UNROLL
    for (int w = 0; w < block_consumers; ++w)
      most = fmaxf(most, weights[2 * (Shape::group * w + query)]);
    float all = 0, out = 0;
    FUSELINE_UNROLL
    for (int w = 0; w < block_consumers; ++w) {
      const float2 of_warp =
          *reinterpret_cast<const float2*>(weights + 2 * (Shape::group * w + query));
      const float part = power_of_2(of_warp.x - most);
      all += of_warp.y * part;
      out += area[w * elements_of_head + e] * part;
    }
    partial[e] = out;
    if (e % Shape::width == 0) partial_weight[query] = make_float2(most, all);
  }
  named_barrier(1, together);
  if (threadIdx.x == 0) counters.add(in, 1);
}

// Partial softmaxes of one query, `at_once` of them loaded before the first is used.
template <class Shape, int at_once>
struct PartialLoads {
  static constexpr int words = Shape::width / 64;  // pairs of columns of a lane, 32 lanes apart
  float2 weights[at_once], parts[at_once][words];

  FUSELINE_DEVICE void load(const BlockArgs& args, int first, int last, int g, int lane) {
    const float* partial =
        reinterpret_cast<const float*>(args.partial) + g * Shape::width + 2 * lane;
    const float2* weight = reinterpret_cast<const float2*>(args.partial_weight) + g;
    FUSELINE_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const int slot = min_of(first + j, last);
      weights[j] = __ldcg(weight + slot * Shape::group);
      FUSELINE_UNROLL
      for (int i = 0; i < words; ++i)
        parts[j][i] = __ldcg(
            reinterpret_cast<const float2*>(partial + slot * Shape::group * Shape::width + 64 * i));
    }
  }
};

// The new key, value and query are there long before the last partial softmax is: their loads and
// the new key's score come first.
template <class Shape>
FUSELINE_DEVICE void run_join(const BlockArgs& args, const BlockCounters& counters,
                              const BlockInstruction& in) {
  constexpr int words = Shape::width / 64;
  constexpr int at_once = 12;  // most heads have no more than twice as many
  const int g = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (g >= Shape::group) return;
  // Without old keys the first counter is that of the queries; with them, this SM has attended to
  // some of the head's.
  if (in.slots == 0) counters.wait_for(in.waits[0]);
  counters.wait_for(lane == 1 || lane == 2 ? in.waits[lane] : -1);
  const int sequence = in.head / args.kv_heads, kv = in.head % args.kv_heads;
  const long long row = static_cast<long long>(sequence + 1) * args.context - 1;
  const int head = (kv * Shape::group + g) * Shape::width;
  const bf16* q = elements(args.q, sequence) + head + 2 * lane;
  const bf16* k = elements(args.k, row) + kv * Shape::width + 2 * lane;
  const bf16* v = elements(args.v, row) + kv * Shape::width + 2 * lane;
  float score = 0;
  FloatPair out[words];
  FUSELINE_UNROLL
  for (int i = 0; i < words; ++i) {
    const FloatPair a = unpack<bf16>(load_word(q + 64 * i)),
                    b = unpack<bf16>(load_word(k + 64 * i));
    out[i] = unpack<bf16>(load_word(v + 64 * i));
    score += a.low * b.low + a.high * b.high;
  }
  FUSELINE_UNROLL
  for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffU, score, step);
  float most = score * args.scale, all = 1;

  if (in.slots > 0) counters.wait_for(in.waits[0]);
  const int behind = in.slot + in.slots;
  FUSELINE_NO_UNROLL
  for (int s = in.slot; s < behind; s += at_once) {
    PartialLoads<Shape, at_once> of;
    of.load(args, s, behind - 1, g, lane);
    FUSELINE_UNROLL
    for (int j = 0; j < at_once; ++j) {
      if (s + j >= behind) break;
      const float now = fmaxf(most, of.weights[j].x);
      const float old = power_of_2(most - now), part = power_of_2(of.weights[j].x - now);
      most = now;
      all = all * old + of.weights[j].y * part;
      FUSELINE_UNROLL
      for (int i = 0; i < words; ++i) {
        out[i].low = out[i].low * old + of.parts[j][i].x * part;
        out[i].high = out[i].high * old + of.parts[j][i].y * part;
      }
    }
  }
  const float share = 1 / all;
  FUSELINE_UNROLL
  for (int i = 0; i < words; ++i)
    *reinterpret_cast<u32*>(writable(args.attn, sequence) + head + 2 * lane + 64 * i) =
        pack<bf16>(out[i].low * share, out[i].high * share);
  __syncwarp();
  if (lane == 0) counters.add(in, 1);
}

}  // namespace fuseline::gpu
