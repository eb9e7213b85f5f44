// What the decays of a chunk's tokens make of its products. Token t of the chunk multiplies the
// state by exp(log_decay[t]) and adds share[t] · x[t] k[t]^T to it, so
//
//   y[t] = open[t] · S q[t] + sum over s <= t of exp(sum[t] - sum[s]) · share[s] · (k[s] q[t]) x[s]
//   S'   = open[last] · S   + sum over all s of  kept[s] · x[s] k[s]^T
//
//   sum[t]   log decays of tokens 0 to t
//   open[t]  exp(sum[t])
//   kept[s]  share[s] · exp(log decays of the tokens behind s), summed outwards from the last one,
//            so that the tokens that count most lose no digits
//
// No exponent is above 0 where no log decay is. Host and device code, since a test runs it.
#pragma once

#include "../epilogue/map.cuh"

namespace fuseline::gpu::stream {

constexpr int chunk_tokens = 64;  // two of them in every lane of a warp

// exp(-128) is 0 in fp32, and so is every product with it. A token that forgets more than that
// would cost the sums their digits, and minus infinity would make them no numbers.
constexpr float least_log_decay = -128.0F;

struct ChunkFactors {
  float sum[chunk_tokens], open[chunk_tokens], share[chunk_tokens], kept[chunk_tokens];
};

// A token's operands, 0 and 0 for one that does not exist.
struct TokenFactors {
  float log_decay = 0.0F, share = 0.0F;
};

// Tokens 2 · lane and 2 · lane + 1 from every lane of a warp. Warp: lane(); up(x, n) and down(x, n)
// give the number of the lane n before and n behind; what lanes outside would give is not used.
template <class Warp>
FUSELINE_HD void chunk_factors(ChunkFactors& to, const TokenFactors& first,
                               const TokenFactors& second, const Warp& warp) {
  const int lane = warp.lane();
  const float a = first.log_decay < least_log_decay ? least_log_decay : first.log_decay;
  const float b = second.log_decay < least_log_decay ? least_log_decay : second.log_decay;
  float before = a + b, behind = a + b;  // with the lane's own
  FUSELINE_UNROLL
  for (int n = 1; n < 32; n *= 2) {
    const float left = warp.up(before, n), right = warp.down(behind, n);
    if (lane >= n) before += left;
    if (lane + n < 32) behind += right;
  }
  before = warp.up(before, 1);
  behind = warp.down(behind, 1);
  if (lane == 0) before = 0.0F;
  if (lane == 31) behind = 0.0F;
  const int t = 2 * lane;
  to.sum[t] = before + a;
  to.sum[t + 1] = before + (a + b);
  to.open[t] = fast_exp(before + a);
  to.open[t + 1] = fast_exp(before + (a + b));
  to.share[t] = first.share;
  to.share[t + 1] = second.share;
  to.kept[t] = first.share * fast_exp(b + behind);
  to.kept[t + 1] = second.share * fast_exp(behind);
}

}  // namespace fuseline::gpu::stream
