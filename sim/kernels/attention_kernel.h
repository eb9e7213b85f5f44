// The fused attention kernel: prefill, and decode that splits the keys over thread blocks.
#pragma once

#include <cstdint>
#include <optional>

#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/attention_time.h"
#include "sim/kernels/kernel_estimate.h"
#include "sim/kernels/program_streams.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

struct AttentionEstimate {
  HbmTraffic hbm;
  Bytes l2;  // Q and the result once, K and V once per query tile that sees them
  Bytes smem;
  Seconds tensor_time, exp_time, hbm_time, l2_time;
  Seconds work;  // what the kernel adds to the time of an empty one
  Bound bound = Bound::tensor;
  std::int64_t splits = 1;  // thread blocks that share the keys of one query tile
  // The kernel that merges the splits' partial results.
  std::optional<Seconds> combine_work;
  Bytes combine_l2;
  Seconds own_start;  // that a launch of our own decode kernel takes besides `work`
};

// Q [B·T, H·d], K and V [B·S, Hkv·d] and the result go through the cache once per sequence and
// head: heads that share keys find them in L2. What the program's prologue and body load and store
// besides (RoPE tables, cache rows) is streamed with them.
AttentionEstimate simulate_attention(const Program& program, Implementation implementation,
                                     const AddressMap& addresses, const Gpu& gpu, L2Cache& cache);

// All that decides which chunks attention touches, and in which order.
struct AttentionWalk {
  StreamWalk before;  // what a prologue stores comes before attention reads it
  StreamWalk after;   // the result comes last
  AttentionShape shape;
  std::optional<CachedSlice> q;  // unless the prologue makes it
  CachedSlice k, v;
  std::optional<CachedSlice> bias{};
  std::optional<CachedSlice> k_scale{}, v_scale{};  // of a cache in few bits
};
AttentionWalk attention_walk(const Program& program, const AddressMap& addresses, const Gpu& gpu);
WalkTraffic walk(const AttentionWalk& attention, L2Cache& cache);
void describe(const AttentionWalk& attention, WalkKey& key);
// What simulate_attention() says of an attention that moves this.
AttentionEstimate estimate_attention(const Program& program, Implementation implementation,
                                     const AttentionWalk& walk, const Gpu& gpu, HbmTraffic hbm);

// Whether the kernel for few queries behind a context runs, which splits keys over thread blocks
// and takes the query heads that share keys together. Measured on an H200
// (h200-pytorch-wide/attention_queries.csv): the library has it for a single new token only. Ours
// takes up to 16. More run the prefill kernel, whole tiles of queries, each of which walks all
// keys.
bool splits_keys(const AttentionShape& shape, Implementation implementation);

// The thread blocks of the kernel for few queries behind a context. A block has a tile of 16
// queries that share keys; further ones read the same keys again. Where heads of V are wide,
// several of the library's blocks have a part of its columns each, and all of K; ours have whole
// heads.
struct DecodeGrid {
  std::int64_t heads = 0;    // key/value heads of all sequences, once for every tile of queries
  std::int64_t repeats = 1;  // tiles of queries that share keys
  std::int64_t parts = 1;    // of V's columns
  // Blocks that share the keys. The library's: a power of two that fills the GPU about twice, each
  // with at least a tile of keys; 1 when the heads alone fill half of the GPU or keys are few.
  // Ours: key_splits() (model/attention_kernels.h).
  std::int64_t splits = 1;
  std::int64_t at_once = 0;  // of our own kernel: blocks that run at once
};
DecodeGrid decode_grid(const AttentionShape& shape, Implementation implementation, const Gpu& gpu);
// Whether the last of the blocks that share keys joins what the others made, so that no second
// launch does.
bool joins_splits(const AttentionShape& shape, Implementation implementation);

}  // namespace fuseline
