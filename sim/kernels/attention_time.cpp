#include "sim/kernels/attention_time.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <vector>

#include "model/attention_kernels.h"
#include "sim/memory/visible_keys.h"

namespace fuseline {

std::int64_t rounded_keys(const AttentionShape& shape, std::int64_t first_query, std::int64_t count,
                          std::int64_t key_tile) {
  const KeyRange range = visible_keys(shape, first_query, count);
  return ceil_div(range.end, key_tile) * key_tile - range.begin / key_tile * key_tile;
}

namespace {

bool behind_context(const AttentionShape& s) { return s.kv_tokens > s.q_tokens; }

// Of so many tiles the loads are even but for half a tile.
constexpr std::int64_t kEnough = 1 << 14;

// The longest-loaded SM: query-key pairs of its tiles, masked parts included, and the number of its
// tiles.
struct Load {
  double pairs = 0;
  double items = 0;
};

// The query tiles of one head, in ascending order: their pairs of a query and a key.
std::vector<double> query_tiles(const AttentionShape& shape) {
  std::vector<double> tiles;
  for (std::int64_t q = 0; q < shape.q_tokens; q += kQueryTile) {
    const std::int64_t count = std::min(kQueryTile, shape.q_tokens - q);
    // Warp groups take 64 queries each; a half-empty tile still costs the half. Behind a context
    // the library's kernel takes as long for 2 tokens as for 128.
    const std::int64_t height = behind_context(shape) ? kQueryTile : ceil_div(count, 64) * 64;
    tiles.push_back(static_cast<double>(height * rounded_keys(shape, q, count)));
  }
  return tiles;
}

// The key tiles of one head, the first keys, which are seen most, at the front: pairs with the
// queries that see some key of the tile, in blocks of 64, of `queries` heads.
std::vector<double> key_tiles(const AttentionShape& shape, std::int64_t queries) {
  std::vector<double> tiles;
  for (std::int64_t k = 0; k < shape.kv_tokens; k += kKeyTile) {
    std::int64_t seen = 0;
    for (std::int64_t q = 0; q < shape.q_tokens; q += 64) {
      const KeyRange keys = visible_keys(shape, q, std::min<std::int64_t>(64, shape.q_tokens - q));
      if (keys.begin < k + kKeyTile && keys.end > k) seen += 64;
    }
    tiles.push_back(static_cast<double>(seen * kKeyTile * queries));
  }
  return tiles;
}

// Deals the tiles of head after head, in their order, to whichever SM is free first.
// `item_pairs`: what a tile costs besides its pairs, in pairs.
Load longest_load(const std::vector<double>& tiles, std::int64_t heads, std::int64_t sms,
                  double item_pairs) {
  const double sum = std::accumulate(tiles.begin(), tiles.end(), 0.0);
  const std::int64_t items = static_cast<std::int64_t>(tiles.size()) * heads;
  if (items > kEnough) {
    const double share = static_cast<double>(heads) / static_cast<double>(sms);
    return {sum * share + tiles.back() / 2, static_cast<double>(tiles.size()) * share};
  }
  struct Sm {
    double load, pairs, items;
    bool operator>(const Sm& other) const { return load > other.load; }
  };
  std::priority_queue<Sm, std::vector<Sm>, std::greater<>> free_first;
  for (std::int64_t i = 0; i < std::min(sms, items); ++i) free_first.push({0, 0, 0});
  Sm longest{0, 0, 0};
  for (std::int64_t head = 0; head < heads; ++head) {
    for (const double pairs : tiles) {
      Sm sm = free_first.top();
      free_first.pop();
      sm = {sm.load + pairs + item_pairs, sm.pairs + pairs, sm.items + 1};
      if (sm > longest) longest = sm;
      free_first.push(sm);
    }
  }
  return {longest.pairs, longest.items};
}

double flops_per_clock(const Gpu& gpu) {
  const double tensor_clock =
      gpu.tensor_clock.value() > 0 ? gpu.tensor_clock.value() : gpu.sm_clock.value();
  return gpu.tensor_bf16.value() / tensor_clock / static_cast<double>(gpu.sm_count);
}

double loss_of_width(double width, const AttentionConstants& c) {
  const double full = static_cast<double>(c.full_tile_width);
  return 1 + c.wide_head_loss * std::max(0.0, width / full - 1);
}

// Pairs of a query and a key on the multiprocessor with the most, in tiles of 64 x 64. `alone`:
// what a pair costs where a thread block has a multiprocessor for itself, in those of two that
// share it.
double generic_pairs(const AttentionShape& shape, const Gpu& gpu, double alone) {
  constexpr std::int64_t kTile = 64;
  double most = 0, sum = 0;
  for (std::int64_t q = 0; q < shape.q_tokens; q += kTile) {
    const KeyRange range = visible_keys(shape, q, std::min(kTile, shape.q_tokens - q));
    const std::int64_t keys = ceil_div(range.end, kTile) * kTile - range.begin / kTile * kTile;
    most = std::max(most, static_cast<double>(kTile * keys));
    sum += static_cast<double>(kTile * keys);
  }
  const double heads = static_cast<double>(shape.batch * shape.heads);
  // Two thread blocks share a multiprocessor: the longest is alone at the end.
  return std::max(most * alone, sum * heads / static_cast<double>(gpu.sm_count));
}

// SM cycles for one product of a pair of a query and a key, with heads so wide. Softmax hides a
// part of it in the forward kernel.
double product_cycles(double width, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  // Wide heads leave room for smaller tiles only: about a third more time per doubling.
  return 2.0 * width / flops_per_clock(gpu) * c.product_exposed * loss_of_width(width, c);
}

// Tiles of `heads` heads in the order in which our own kernels draw them: the longest of so many
// heads, then the next. `of_head` has the longest first.
std::vector<double> in_drawn_order(const std::vector<double>& of_head, std::int64_t heads,
                                   std::int64_t together) {
  std::vector<double> tiles;
  tiles.reserve(of_head.size() * static_cast<std::size_t>(heads));
  for (std::int64_t head = 0; head < heads; head += together)
    for (const double pairs : of_head)
      tiles.insert(tiles.end(), static_cast<std::size_t>(std::min(together, heads - head)), pairs);
  return tiles;
}

// The tiles of queries of our own forward kernel.
std::vector<double> own_query_tiles(const AttentionShape& shape, std::int64_t at_once) {
  const std::int64_t key_tile = forward_block_keys(shape.head_width, shape.v_width());
  std::vector<double> of_head;
  for (std::int64_t q = 0; q < shape.q_tokens; q += kQueryTile) {
    const std::int64_t count = std::min(kQueryTile, shape.q_tokens - q);
    of_head.push_back(static_cast<double>(kQueryTile * rounded_keys(shape, q, count, key_tile)));
  }
  std::ranges::reverse(of_head);
  return in_drawn_order(of_head, shape.batch * shape.heads,
                        heads_together(shape, kQueryTile, at_once));
}

// What a pair and a tile cost, in SM cycles.
struct PassCost {
  double products, exp, item;
};

PrefillTime pass_time(const std::vector<double>& tiles, std::int64_t heads, const PassCost& cost,
                      const Gpu& gpu, double clock) {
  const Load load =
      longest_load(tiles, heads, gpu.sm_count, cost.item / (cost.products + cost.exp));
  return {Seconds((load.pairs * cost.products + load.items * cost.item) / clock),
          Seconds(load.pairs * cost.exp / clock)};
}

}  // namespace

PrefillTime prefill_time(const AttentionShape& shape, const Gpu& gpu, double clock_factor) {
  const AttentionConstants& c = gpu.constants.attention;
  const double width = static_cast<double>(shape.head_width + shape.v_width()) / 2;
  return pass_time(query_tiles(shape), shape.batch * shape.heads,
                   {2 * product_cycles(width, gpu), c.exp_cycles, width * c.item_cycles_per_width},
                   gpu, gpu.sm_clock.value() * clock_factor);
}

PrefillTime own_prefill_time(const AttentionShape& shape, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  const auto width = static_cast<double>(shape.head_width + shape.v_width());
  const PassCost cost{2 * width / flops_per_clock(gpu) * c.own_forward_product,
                      c.own_forward_exp_cycles, width / 2 * c.item_cycles_per_width};
  const double clock = gpu.sm_clock.value();
  const std::int64_t heads = shape.batch * shape.heads;
  if (ceil_div(shape.q_tokens, kQueryTile) * heads > kEnough)
    return pass_time(query_tiles(shape), heads, cost, gpu, clock);
  return pass_time(own_query_tiles(shape, gpu.sm_count), 1, cost, gpu, clock);
}

bool runs_generic_attention(const AttentionMainloop& m, std::int64_t bias_columns,
                            Implementation implementation, const Gpu& gpu) {
  return implementation != Implementation::library_attention && has_feature(gpu, Feature::wgmma) &&
         !has_wgmma_attention(m, bias_columns);
}

PrefillTime generic_prefill_time(const AttentionShape& shape, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  const auto columns = static_cast<double>(shape.head_width + shape.v_width());
  const double cycles = generic_pairs(shape, gpu, c.generic_longest) * 2 * columns /
                        flops_per_clock(gpu) * c.generic_product;
  return {Seconds(cycles / gpu.sm_clock.value()), {}};
}

PrefillTime generic_gradient_time(const AttentionShape& shape, const Gpu& gpu) {
  const AttentionConstants& c = gpu.constants.attention;
  const auto columns = static_cast<double>(5 * shape.head_width + 3 * shape.v_width());
  constexpr double kAlone = 0.5;  // as if it had the whole multiprocessor
  const double cycles = generic_pairs(shape, gpu, kAlone) * 2 * columns / flops_per_clock(gpu) *
                        c.generic_gradient_product;
  return {Seconds(cycles / gpu.sm_clock.value()), {}};
}

PrefillTime gradient_time(const AttentionShape& shape, const Gpu& gpu,
                          Implementation implementation, bool per_query_head) {
  const AttentionConstants& c = gpu.constants.attention;
  const double clock = gpu.sm_clock.value();
  const auto k = static_cast<double>(shape.head_width), v = static_cast<double>(shape.v_width());
  const double way = (k + v) / 2 * c.item_cycles_per_width;
  const std::int64_t heads = shape.batch * shape.heads;
  if (implementation == Implementation::library_attention) {
    // Three of the five products have the width of the keys, two that of the values.
    const double products = 2 * product_cycles((3 * k + 2 * v) / 5, gpu) * c.gradient_products;
    return pass_time(query_tiles(shape), heads,
                     {products, c.exp_cycles * c.gradient_exps, c.gradient_item_cycles + way}, gpu,
                     clock);
  }
  const double of_k = product_cycles(k, gpu) * c.own_gradient_product;
  const double of_v = product_cycles(v, gpu) * c.own_gradient_product;
  const double exp = c.exp_cycles * c.own_gradient_exps;
  const double item = c.own_gradient_item_cycles + way;
  const std::int64_t shared_by = per_query_head ? 1 : shape.heads / shape.kv_heads;
  const std::int64_t drawn = heads_together(shape, kQueryTile, gpu.sm_count);
  const auto time = [&](const std::vector<double>& of_head, std::int64_t of_heads,
                        std::int64_t together, const PassCost& cost) {
    if (std::ssize(of_head) * of_heads > kEnough)
      return pass_time(of_head, of_heads, cost, gpu, clock);
    return pass_time(in_drawn_order(of_head, of_heads, together), 1, cost, gpu, clock);
  };
  // S, dP, dV and dK; then S, dP and dQ. The first keys and the last queries are the longest.
  const PrefillTime keys =
      time(key_tiles(shape, shared_by), heads / shared_by,
           std::max<std::int64_t>(1, drawn / shared_by), {2 * of_k + 2 * of_v, exp, item});
  std::vector<double> queries = query_tiles(shape);
  std::ranges::reverse(queries);
  const PrefillTime rest = time(queries, heads, drawn, {2 * of_k + of_v, exp, item});
  return {keys.tensor + rest.tensor, keys.exp + rest.exp};
}

Seconds gradient_overhead(const AttentionShape& s, Implementation implementation, const Gpu& gpu) {
  const Constants& c = gpu.constants;
  if (implementation != Implementation::library_attention)
    return gpu.tiny_kernel + c.launch.gap + c.attention.start;
  const Bytes sums = checked_product<Bytes>(4 * s.batch * s.heads, s.q_tokens, s.head_width);
  return sums / BytesPerSecond(gpu.hbm_bandwidth_sustained.value() * c.stream.hbm_fraction);
}

}  // namespace fuseline
