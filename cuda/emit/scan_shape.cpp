#include "cuda/emit/scan_shape.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "cuda/emit/widths.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kNumbersOfThread = 32;  // of the state, in registers
// Four thread blocks share a multiprocessor, and no launch has to ask for more than it gets.
constexpr std::int64_t kSharedBytes = 48 * 1024;
constexpr int kMostTokens = 64;
constexpr std::int64_t kShortState = 32;
constexpr int kLeastThreads = 64;
// Four for every multiprocessor of an H200.
constexpr std::int64_t kManyBlocks = 528;
constexpr int kTogether = 4;

int power_at_least(std::int64_t n) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

// An exponential for every number of the state keeps more threads busy than products alone do. A
// few tokens wait for the state to come from memory: then a thread has much of it under way.
std::int64_t numbers_of_thread(const ScanMainloop& scan) {
  const ScanShape& s = scan.shape;
  if (!scan.has_rates_of_columns() || s.state_width <= 4) return 8;
  const bool busy = s.batch * s.heads * s.head_width >= kBusyThreads;
  if (s.tokens >= kTogether || !busy) return 4;
  return s.state_width > 8 ? 16 : 8;
}

void share_state(const ScanMainloop& scan, ScanLayout& l) {
  const std::int64_t N = scan.shape.state_width;
  l.numbers = static_cast<int>(numbers_of_thread(scan));
  while (ceil_div(N, l.numbers) > kWarp) l.numbers *= 2;
  l.lanes = power_at_least(ceil_div(N, l.numbers));
}

// More columns in a thread share what it reads of k and q, fewer make more threads.
void share_columns(const ScanShape& s, bool rates_of_columns, ScanLayout& l) {
  const std::int64_t all = s.batch * s.heads * s.head_width * l.lanes;
  l.columns = 1;
  if (rates_of_columns) return;
  for (const int more : {2, 4})
    if (s.head_width % more == 0 && more * l.numbers <= kNumbersOfThread &&
        (more == 2 || all / more >= kBusyThreads))
      l.columns = more;
}

}  // namespace

std::int64_t ScanLayout::shared_bytes() const {
  const std::int64_t keys = 2 * groups * std::int64_t{lanes} * numbers;
  return 4 * tokens * (cols() + keys + 2 * (threads / lanes));
}

ScanLayout scan_layout(const ScanMainloop& scan) {
  const ScanShape& s = scan.shape;
  FUSELINE_ASSERT(s.state_width <= widest_state, "a state that the lanes of a warp hold");
  ScanLayout l;
  share_state(scan, l);
  share_columns(s, scan.has_rates_of_columns(), l);
  const std::int64_t cols = s.heads * s.head_width;
  while (l.cols() < kVectorCols) l.threads *= 2;
  while (l.threads > kWarp && l.cols() / 2 >= std::max(cols, kVectorCols)) l.threads /= 2;
  // Where k and q are short, smaller thread blocks load little more, and some load while others
  // walk.
  while (s.state_width <= kShortState && l.threads > kLeastThreads && l.cols() / 2 >= kVectorCols &&
         scan_blocks(scan, l) < kManyBlocks)
    l.threads /= 2;

  const std::int64_t group_cols = cols / s.groups;
  if (group_cols % l.cols() != 0)
    l.groups = static_cast<int>(std::min(s.groups, ceil_div(l.cols() - 1, group_cols) + 1));

  l.tokens = std::min(kMostTokens, power_at_least(s.tokens));
  while (l.tokens > 1 && l.shared_bytes() > kSharedBytes) l.tokens /= 2;
  l.together = std::min(kTogether, l.tokens);
  l.units = std::min(2, l.tokens);
  return l;
}

std::int64_t scan_blocks(const ScanMainloop& scan, const ScanLayout& layout) {
  return scan.shape.batch * ceil_div(scan.shape.heads * scan.shape.head_width, layout.cols());
}

}  // namespace fuseline::cuda
