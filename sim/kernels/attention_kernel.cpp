#include "sim/kernels/attention_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/error.h"
#include "model/attention_kernels.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/memory/traffic.h"
#include "sim/memory/visible_keys.h"

namespace fuseline {
namespace {

constexpr std::int64_t kMostSplitQueries = 16;  // of our own kernel
constexpr std::int64_t kDecodeQueries = 16;     // rows of a thread block's tile, ours and cuDNN's
constexpr std::int64_t kNarrowWidth = 64;       // the narrowest tile of keys
constexpr std::int64_t kWarpKeys = 64;          // 16 for each warp of our own decode kernel
constexpr std::int64_t kOwnStages = 3;          // of its rings
constexpr std::int64_t kMostOwnBlocks = 4;      // on one SM: its registers allow no more

// Every query head of a sequence reads its keys after the heads that share them.
void read_operands(const AttentionWalk& attention, L2Cache& cache) {
  const AttentionShape& s = attention.shape;
  const std::int64_t d = s.head_width;
  const std::int64_t keys = attention.k.rows / s.batch;
  const Bytes asked = checked_product<Bytes>(keys, d, attention.k.matrix.element) +
                      checked_product<Bytes>(keys, s.v_width(), attention.v.matrix.element) +
                      (attention.q ? checked_product<Bytes>(s.heads / s.kv_heads * s.q_tokens, d,
                                                            attention.q->matrix.element)
                                   : Bytes());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t head = 0; head < s.kv_heads; ++head) {
      for (std::int64_t row = 0; row < keys; row += kKeyTile) {
        const std::int64_t begin = b * keys + row;
        const std::int64_t end = b * keys + std::min(keys, row + kKeyTile);
        for (const CachedSlice* slice : {&attention.k, &attention.v}) {
          const std::int64_t width = slice == &attention.v ? s.v_width() : d;
          const std::int64_t col = slice->col_begin + head * width;
          cache.read(slice->matrix, begin, end, col, col + width);
        }
        for (const auto* scale : {&attention.k_scale, &attention.v_scale}) {
          if (!*scale) continue;
          const std::int64_t col = (*scale)->col_begin + head;
          cache.read((*scale)->matrix, begin, end, col, col + 1);
        }
      }
      if (attention.bias) {
        const CachedSlice& bias = *attention.bias;
        const std::int64_t rows = s.heads / s.kv_heads * s.q_tokens;
        cache.read(bias.matrix, head * rows, (head + 1) * rows, bias.col_begin,
                   bias.col_begin + bias.cols);
      }
      if (attention.q) {
        const CachedSlice& q = *attention.q;
        const std::int64_t share = s.heads / s.kv_heads;
        const std::int64_t col = q.col_begin + head * share * d;
        cache.read(q.matrix, b * s.q_tokens, (b + 1) * s.q_tokens, col, col + share * d);
      }
      const std::int64_t done = b * s.kv_heads + head;
      cache.step_ends({.kind = WalkStep::Kind::heads,
                       .begin = done,
                       .end = done + 1,
                       .of = s.batch * s.kv_heads,
                       .asked = asked});
    }
  }
}

// Parts of a kernel that overlap, but the less the closer their lengths: a p-norm.
Seconds partly_overlapped(Seconds a, Seconds b, double exponent) {
  const double longer = std::max(a, b).value();
  if (longer <= 0) return Seconds();
  const double ratio = std::min(a, b).value() / longer;
  return Seconds(longer * std::pow(1 + std::pow(ratio, exponent), 1 / exponent));
}

// Scales that are loaded with the keys and values of so many keys of one head.
Bytes scale_bytes(const AttentionWalk& walk, std::int64_t keys) {
  Bytes sum;
  for (const auto* scale : {&walk.k_scale, &walk.v_scale})
    if (*scale) sum += checked_product<Bytes>(keys, (*scale)->matrix.element);
  return sum;
}

// SM cycles that dequantise so many keys of one head and their values. The constant is that of
// weights, assumed and not measured.
double dequantise_cycles(const AttentionShape& s, double keys, const Gpu& gpu) {
  if (!s.cache.quantised()) return 0;
  return keys * static_cast<double>(s.head_width + s.v_width()) *
         gpu.constants.gemm.dequantise_instructions / gpu.constants.stream.issue_lanes;
}

// Columns of a tile that holds heads of this width.
std::int64_t tile_width(std::int64_t width, const AttentionConstants& c) {
  if (width <= kNarrowWidth) return kNarrowWidth;
  return ceil_div(width, c.full_tile_width) * c.full_tile_width;
}

// One thread block takes its keys one tile after the other: waits for each, and moves it. Blocks
// beyond those that an SM's memory system serves at a time come later.
Seconds decode_blocks_time(const AttentionShape& s, const DecodeGrid& grid, std::int64_t keys,
                           ElementSize of_keys, ElementSize of_values, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  const std::int64_t tiled = ceil_div(ceil_div(keys, grid.splits), kKeyTile) * kKeyTile;
  const double bytes =
      static_cast<double>(tile_width(s.head_width, c) * of_keys) +
      static_cast<double>(tile_width(s.v_width(), c) * of_values) / static_cast<double>(grid.parts);
  const double rate = grid.parts > 1 ? c.wide_block_bytes_per_cycle : c.block_bytes_per_cycle;
  const double cycles = static_cast<double>(tiled) * (c.block_cycles_per_key + bytes / rate);
  const auto blocks = static_cast<double>(grid.heads * grid.parts * grid.splits);
  const auto sms = static_cast<double>(gpu.sm_count);
  const double rounds = std::max(1.0, blocks / (c.served_blocks_per_sm * sms));
  // Thread blocks of one SM share its lanes, and fill each other's waiting.
  const double dequantised = dequantise_cycles(s, static_cast<double>(tiled), gpu);
  const double alone = cycles + dequantised;
  const double together = std::max(cycles * rounds, dequantised * blocks / sms);
  return Seconds(std::max(alone, together) / gpu.sm_clock.value());
}

// Of our own decode kernel: every round of its thread blocks streams its share of the keys, all
// together as fast as HBM allows and each SM as fast as it can, and waits for its first loads.
Seconds own_decode_time(const AttentionShape& s, const DecodeGrid& grid, std::int64_t keys,
                        Bytes key_and_value, Seconds hbm, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  const std::int64_t blocks = grid.heads * grid.splits;
  const std::int64_t tiled = ceil_div(ceil_div(keys, grid.splits), kWarpKeys) * kWarpKeys;
  const double bytes_cycles =
      static_cast<double>(tiled) * key_and_value.as_double() / c.own_decode_bytes_per_cycle;
  // What a key takes besides its bytes is waiting, which thread blocks of one SM do together.
  const double alone = static_cast<double>(tiled) * c.block_cycles_per_key + bytes_cycles;
  const double dequantised = dequantise_cycles(s, static_cast<double>(tiled), gpu);
  double seconds = 0;
  for (std::int64_t left = blocks; left > 0; left -= grid.at_once) {
    const auto of_round = static_cast<double>(std::min(left, grid.at_once));
    const double share = hbm.value() * of_round / static_cast<double>(blocks);
    const double of_sm = std::max(1.0, of_round / static_cast<double>(gpu.sm_count));
    const double cycles = std::max({alone, bytes_cycles * of_sm, dequantised * of_sm});
    const Seconds walk(cycles / gpu.sm_clock.value());
    seconds += partly_overlapped(Seconds(share), walk, c.overlap_exponent).value() +
               c.own_decode_round.value();
  }
  return Seconds(seconds);
}

bool same_place(const CachedSlice& a, const CachedSlice& b) {
  return a.matrix.tensor == b.matrix.tensor && a.col_begin == b.col_begin;
}

}  // namespace

bool splits_keys(const AttentionShape& shape, Implementation implementation) {
  const bool library = implementation == Implementation::library_attention;
  return shape.kv_tokens > shape.q_tokens && shape.q_tokens <= (library ? 1 : kMostSplitQueries);
}

DecodeGrid decode_grid(const AttentionShape& shape, Implementation implementation, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  const bool library = implementation == Implementation::library_attention;
  const std::int64_t queries = shape.heads / shape.kv_heads * shape.q_tokens;
  DecodeGrid grid;
  grid.repeats = ceil_div(queries, kDecodeQueries);
  grid.heads = shape.batch * shape.kv_heads * grid.repeats;
  if (library) grid.parts = ceil_div(shape.v_width(), c.full_tile_width);
  const KeyRange keys = visible_keys(shape, 0, shape.q_tokens);
  const std::int64_t count = keys.end - keys.begin;
  if (!library) {
    const std::int64_t shared = decode_shared_bytes(shape, kOwnStages);
    const std::int64_t on_sm =
        std::clamp<std::int64_t>(gpu.smem_per_sm.value() / shared, 1, kMostOwnBlocks);
    grid.at_once = on_sm * gpu.sm_count;
    // The launcher splits by all keys, whatever a window leaves of them to see.
    grid.splits = key_splits(grid.heads, shape.kv_tokens, grid.at_once);
    return grid;
  }
  if (2 * grid.heads > gpu.sm_count || count < c.split_least_keys) return grid;
  const auto fitting = static_cast<std::uint64_t>(std::min(
      c.blocks_per_sm * gpu.sm_count / grid.heads, std::max<std::int64_t>(1, count / kKeyTile)));
  grid.splits = static_cast<std::int64_t>(std::bit_floor(fitting));
  return grid;
}

bool joins_splits(const AttentionShape& shape, Implementation implementation) {
  return implementation != Implementation::library_attention &&
         shape.head_width <= widest_joined_head;
}

AttentionWalk attention_walk(const Program& program, const AddressMap& addresses, const Gpu& gpu) {
  const auto* m = std::get_if<AttentionMainloop>(&program.mainloop);
  FUSELINE_ASSERT(m != nullptr, program.name);
  const AttentionShape& s = m->shape;
  AttentionWalk attention;
  attention.shape = s;
  attention.k = addresses.locate(m->k);
  attention.v = addresses.locate(m->v);
  if (m->q_value < 0) attention.q = addresses.locate(m->q);
  if (m->bias) attention.bias = addresses.locate(*m->bias);
  if (m->k_scale) attention.k_scale = addresses.locate(*m->k_scale);
  if (m->v_scale) attention.v_scale = addresses.locate(*m->v_scale);

  StreamKernel before;
  StreamKernel after;
  before.rows = after.rows = s.batch * s.q_tokens;
  before.cols = after.cols = s.heads * s.v_width();
  for (const Stream& stream : streams_of(program, addresses)) {
    const bool operand = !stream.store && (same_place(stream.part, attention.k) ||
                                           same_place(stream.part, attention.v));
    if (operand) continue;  // the mainloop's own reads
    const bool of_keys = m->gradient && stream.part.cols == s.heads * s.head_width;
    const bool result = stream.store && stream.part.rows == after.rows &&
                        (stream.part.cols == after.cols || of_keys) &&
                        stream.part.matrix.cols == stream.part.cols;
    (result ? after : before).streams.push_back(stream);
  }
  attention.before = stream_walk(before, gpu);
  attention.after = stream_walk(after, gpu);
  return attention;
}

WalkTraffic walk(const AttentionWalk& attention, L2Cache& cache) {
  touch_all(attention.before, cache);
  read_operands(attention, cache);
  touch_all(attention.after, cache);
  return {{}, cache.take_traffic(), {}, 0};
}

void describe(const AttentionWalk& attention, WalkKey& key) {
  const AttentionShape& s = attention.shape;
  key.kind(WalkKey::Kind::attention);
  for (const std::int64_t number :
       {s.batch, s.heads, s.kv_heads, s.head_width, s.v_width(), s.q_tokens})
    key.number(number);
  describe(attention.before, key);
  describe(attention.after, key);
  describe(attention.k, key);
  describe(attention.v, key);
  key.number(attention.q ? 1 : 0);
  if (attention.q) describe(*attention.q, key);
  for (const auto* slice : {&attention.bias, &attention.k_scale, &attention.v_scale}) {
    key.number(*slice ? 1 : 0);
    if (*slice) describe(**slice, key);
  }
}

AttentionEstimate simulate_attention(const Program& program, Implementation implementation,
                                     const AddressMap& addresses, const Gpu& gpu, L2Cache& cache) {
  const AttentionWalk attention = attention_walk(program, addresses, gpu);
  return estimate_attention(program, implementation, attention, gpu, walk(attention, cache).hbm);
}

AttentionEstimate estimate_attention(const Program& program, Implementation implementation,
                                     const AttentionWalk& walk, const Gpu& gpu, HbmTraffic hbm) {
  const auto* m = std::get_if<AttentionMainloop>(&program.mainloop);
  FUSELINE_ASSERT(m != nullptr, program.name);
  const AttentionShape& s = m->shape;
  const AttentionConstants& c = gpu.constants.attention;
  const CachedSlice& k = walk.k;
  AttentionEstimate e;
  e.hbm = hbm;

  Bytes streamed;
  for (const StreamWalk* part : {&walk.before, &walk.after}) {
    for (const Stream& stream : part->streams) streamed += stream.bytes();
  }
  const ElementSize k_element = k.matrix.element;
  const ElementSize v_element = walk.v.matrix.element;
  if (walk.q)
    streamed += checked_product<Bytes>(walk.q->rows, walk.q->cols, walk.q->matrix.element);
  if (walk.bias)
    streamed += checked_product<Bytes>(walk.bias->rows, walk.bias->cols, s.batch,
                                       walk.bias->matrix.element);

  const double hbm_rate = gpu.hbm_bandwidth_sustained.value() * c.hbm_fraction;
  const double l2_rate = gpu.l2_bandwidth.value() * gpu.constants.stream.l2_fraction;
  Seconds start, own_work;
  bool own_forward = false;
  const bool split = splits_keys(s, implementation) && !m->gradient;
  if (split) {
    const DecodeGrid grid = decode_grid(s, implementation, gpu);
    e.splits = grid.splits;
    const Bytes keys_alone = checked_product<Bytes>(k.rows, k.cols, k_element);
    const Bytes kv = keys_alone + checked_product<Bytes>(k.rows, walk.v.cols, v_element) +
                     scale_bytes(walk, k.rows * s.kv_heads);
    const Bytes again = (grid.repeats - 1) * kv + grid.repeats * (grid.parts - 1) * keys_alone;
    const Bytes once(static_cast<std::int64_t>((kv + streamed).as_double() * l2_crossing(gpu)));
    e.l2 = once + again;
    e.hbm_time = (e.hbm.read + e.hbm.write) / BytesPerSecond(hbm_rate);
    e.l2_time = (once.as_double() + c.repeated_l2_share * again.as_double()) /
                BytesPerSecond(l2_rate).value() * Seconds(1);
    e.smem = kv + again;
    start = c.split_start;
    const bool own = implementation != Implementation::library_attention;
    if (own) {
      const Bytes of_key(s.head_width * k_element + s.v_width() * v_element);
      own_work =
          own_decode_time(s, grid, k.rows / s.batch, of_key, std::max(e.hbm_time, e.l2_time), gpu);
      e.tensor_time = own_decode_time(s, grid, k.rows / s.batch, of_key, Seconds(), gpu);
      e.own_start = c.own_decode_start;
    } else {
      e.tensor_time = decode_blocks_time(s, grid, k.rows / s.batch, k_element, v_element, gpu);
    }
    // fp32 partials [splits, B·H·T, d], written and read back within L2.
    const Bytes partials = e.splits > 1 ? checked_product<Bytes>(2 * e.splits, s.batch * s.heads,
                                                                 s.q_tokens, s.v_width(), 4)
                                        : Bytes();
    if (joins_splits(s, implementation)) {
      e.l2 += partials;
      // The last thread block of a tile reads what all have left of its rows.
      const std::int64_t rows = std::min(kDecodeQueries, s.heads / s.kv_heads * s.q_tokens);
      if (e.splits > 1)
        own_work +=
            Bytes(4 * e.splits * rows * s.v_width()) / BytesPerSecond(c.own_join_gb_per_s * 1e9);
    } else if (e.splits > 1) {
      e.combine_l2 = partials;
      e.combine_work = c.combine + static_cast<double>(e.splits) * c.combine_split +
                       partials / BytesPerSecond(l2_rate);
    }
  } else {
    const bool back = m->gradient.has_value();
    const std::int64_t bias_columns = walk.bias ? walk.bias->matrix.cols : 0;
    const bool generic = runs_generic_attention(*m, bias_columns, implementation, gpu);
    const bool wgmma = implementation != Implementation::library_attention && !generic &&
                       has_feature(gpu, Feature::wgmma);
    const bool own = wgmma && !back;
    const bool in_panels = wgmma && !s.cache.quantised();
    const std::int64_t key_tile = own ? forward_block_keys(s.head_width, s.v_width()) : kKeyTile;
    std::int64_t keys = 0;
    for (std::int64_t first = 0; first < s.q_tokens; first += kQueryTile)
      keys += rounded_keys(s, first, std::min(kQueryTile, s.q_tokens - first), key_tile);
    // Forward K and V, for the gradient also dK and dV (in fp32, summed tile by tile).
    const std::int64_t visits = checked_product<Bytes>(keys, s.batch * s.heads).value();
    const std::int64_t k_cols = in_panels ? panel_columns(s.head_width) : s.head_width;
    const std::int64_t v_cols = in_panels ? panel_columns(s.v_width()) : s.v_width();
    const Bytes tiles = back ? checked_product<Bytes>(visits, 5 * (k_cols + v_cols) / 2, k_element)
                             : checked_product<Bytes>(visits, k_cols, k_element) +
                                   checked_product<Bytes>(visits, v_cols, v_element) +
                                   scale_bytes(walk, visits);
    e.l2 = tiles + streamed;
    e.smem = 2 * tiles;
    const PrefillTime t =
        generic ? (back ? generic_gradient_time(s, gpu) : generic_prefill_time(s, gpu))
        : back  ? gradient_time(s, gpu, implementation, m->gradient->per_query_head)
        : own   ? own_prefill_time(s, gpu)
                : prefill_time(s, gpu);
    e.tensor_time = t.tensor;
    if (s.cache.quantised())
      e.tensor_time += Seconds(dequantise_cycles(s, static_cast<double>(visits), gpu) /
                               static_cast<double>(gpu.sm_count) / gpu.sm_clock.value());
    e.exp_time = t.exp;
    e.hbm_time = (e.hbm.read + e.hbm.write) / BytesPerSecond(hbm_rate);
    e.l2_time = e.l2 / BytesPerSecond(l2_rate);
    own_forward = own;
    start = own ? c.own_forward_start : c.start;
    if (back) start += gradient_overhead(s, implementation, gpu);
    if (back && generic) start += gpu.tiny_kernel + gpu.constants.launch.gap;  // a third launch
  }
  const Seconds compute = e.tensor_time + e.exp_time;
  const Seconds memory = std::max(e.hbm_time, e.l2_time);
  const Seconds longest = std::max(compute, memory);
  e.work = start + longest;
  // The serial walk overlaps only in parts with a transfer that is about as long.
  if (split) e.work = start + partly_overlapped(compute, memory, c.overlap_exponent);
  if (own_work > Seconds()) e.work = start + own_work;
  // A tile of our own forward kernel that waits for HBM has its products to wait for as well.
  if (own_forward)
    e.work =
        start + std::max(partly_overlapped(compute, e.hbm_time, c.overlap_exponent), e.l2_time);
  if (longest <= start) {
    e.bound = Bound::launch;
  } else if (longest == compute) {
    e.bound = e.tensor_time >= e.exp_time ? Bound::tensor : Bound::smem;
  } else {
    e.bound = longest == e.hbm_time ? Bound::hbm : Bound::l2;
  }
  return e;
}

}  // namespace fuseline
