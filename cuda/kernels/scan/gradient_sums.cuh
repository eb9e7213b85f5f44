// The second kernel of a scan's gradient (gradient.cuh): what the thread blocks of a group have of
// dk and dq, and the sequences of the rates, lies in memory and is added up in a fixed order.
#pragma once

#include "gradient_tile.cuh"

namespace fuseline::gpu::stream {

// Adds up what thread blocks left of dk, dq and the rates, one number a thread.
template <class Kernel>
FUSELINE_DEVICE void scan_gradient_sums(const typename Kernel::Params& p,
                                        const ScanGradientSpace& space) {
  const ScanSpace& s = space.scan;
  const int groups = s.heads / s.heads_per_group, width = groups * s.state_width;
  const int blocks = s.heads_per_group / Kernel::heads;  // of a group and sequence
  const long long keys = static_cast<long long>(space.batch) * s.tokens * width;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < 2 * keys) {
    const int which = i >= keys ? 1 : 0;
    const int row = static_cast<int>((i - which * keys) / width);
    const int col = static_cast<int>((i - which * keys) % width);
    const int sequence = row / s.tokens, group = col / s.state_width;
    const long long first = static_cast<long long>(sequence * groups + group) * blocks;
    float sum = 0.0F;
    for (int b = 0; b < blocks; ++b)
      sum += space.keys[(((first + b) * 2 + which) * s.tokens + row % s.tokens) * s.state_width +
                        col % s.state_width];
    put_number(which == 0 ? p.dk.at(row, col) : p.dq.at(row, col), sum);
    return;
  }
  const int rate = static_cast<int>(i - 2 * keys);
  const int each = Kernel::decay == Decay::of_columns ? s.state_width : 1;
  const int all = s.heads * each;
  if (rate >= all) return;
  float sum = 0.0F;
  for (int b = 0; b < space.batch; ++b) sum += space.rates[static_cast<long long>(b) * all + rate];
  put_number(p.d_rates.at(rate / each, rate % each), sum);
}

}  // namespace fuseline::gpu::stream
