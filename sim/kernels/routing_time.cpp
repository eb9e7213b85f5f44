#include "sim/kernels/routing_time.h"

#include <algorithm>
#include <cmath>

namespace fuseline {
namespace {

// A thread block for every row, in passes over the bits of its numbers. Blocks of several rows
// share the SMs.
Seconds select_time(const StreamKernel& kernel, const Gpu& gpu) {
  const RouteConstants& c = gpu.constants.route;
  if (kernel.rows == 1) return c.select_row;
  constexpr std::int64_t kWarp = 32;
  const double lanes = static_cast<double>(kernel.rows) *
                       static_cast<double>(std::max<std::int64_t>(kWarp, kernel.cols));
  return c.select_start + Seconds(lanes * c.select_instructions / issue_rate(gpu));
}

// PyTorch's sizes of a thread block that sorts: threads, and numbers that each of them has.
struct SortBlock {
  std::int64_t threads, numbers;
};

SortBlock sort_block(std::int64_t count) {
  constexpr SortBlock kSizes[] = {{16, 2}, {32, 4}, {32, 32}, {128, 32}};
  for (const SortBlock& size : kSizes) {
    if (count <= size.threads * size.numbers) return size;
  }
  return kSizes[3];
}

// A radix sort by four of 64 bits at a time.
Seconds sort_time(std::int64_t count, const RouteConstants& c) {
  constexpr double kPasses = 16;
  constexpr std::int64_t kWarp = 32;
  const SortBlock block = sort_block(count);
  const double warps = static_cast<double>(ceil_div(block.threads, kWarp));
  return kPasses * (c.sort_step + static_cast<double>(block.numbers) * c.sort_number +
                    (warps - 1) * c.sort_warp);
}

// Stages of a bitonic network, each over all numbers.
Seconds generated_sort_time(std::int64_t count, const RouteConstants& c) {
  const double levels = std::ceil(std::log2(std::max(2.0, static_cast<double>(count))));
  return levels * (levels + 1) / 2 * static_cast<double>(count) * c.generated_sort;
}

}  // namespace

bool routes(Implementation implementation) {
  switch (implementation) {
    case Implementation::framework_select:
    case Implementation::framework_order:
    case Implementation::framework_sort:
    case Implementation::framework_sort_pass:
    case Implementation::generated_sort:
      return true;
    default:
      return false;
  }
}

Seconds routing_time(const StreamKernel& kernel, const Gpu& gpu) {
  const RouteConstants& c = gpu.constants.route;
  switch (kernel.implementation) {
    case Implementation::framework_select:
      return select_time(kernel, gpu);
    case Implementation::framework_order:
      return c.order;
    case Implementation::framework_sort:
      return sort_time(kernel.each, c);
    case Implementation::framework_sort_pass:
      return c.sort_pass;
    case Implementation::generated_sort:
      return generated_sort_time(kernel.each, c);
    default:
      return Seconds();
  }
}

}  // namespace fuseline
