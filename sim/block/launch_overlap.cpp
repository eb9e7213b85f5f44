#include "sim/block/launch_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/error.h"

namespace fuseline {
namespace {

constexpr std::int64_t kMostRows = 128;

bool is_own(Implementation implementation) {
  switch (implementation) {
    case Implementation::epilogue_gemm:
    case Implementation::flash_attention:
    case Implementation::chunked_scan:
    case Implementation::vectorized:
    case Implementation::resident_row:
    case Implementation::finisher:
    case Implementation::chained_products:
    case Implementation::persistent_block:
      return true;
    case Implementation::library_gemm:
    case Implementation::library_attention:
    case Implementation::library_scan:
    case Implementation::strided:
    case Implementation::concat:
    case Implementation::transposing:
    case Implementation::framework_reduce:
    case Implementation::framework_select:
    case Implementation::framework_order:
    case Implementation::framework_sort:
    case Implementation::framework_sort_pass:
    case Implementation::generated_sort:
    case Implementation::scatter_add:
    case Implementation::row_norm:
    case Implementation::generated_pointwise:
    case Implementation::generated_reduction:
      return false;
  }
  FUSELINE_ASSERT(false, "implementation");
}

// On average over groups of rows.
bool has_few_rows(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr) return true;
  const auto groups = static_cast<std::int64_t>(std::max<std::size_t>(1, gemm->groups.size()));
  return gemm->M <= kMostRows * groups;
}

}  // namespace

bool launches_overlap(const Plan& plan, const Gpu& gpu) {
  return has_feature(gpu, Feature::bulk_copy) &&
         std::ranges::all_of(plan.kernels, [](const Kernel& kernel) {
           return (is_own(kernel.implementation) ||
                   kernel.implementation == Implementation::library_gemm) &&
                  std::ranges::all_of(kernel.phases, has_few_rows);
         });
}

void overlap_launches(const Plan& plan, const Gpu& gpu, std::vector<KernelEstimate>& kernels) {
  if (!launches_overlap(plan, gpu)) return;
  for (KernelEstimate& estimate : kernels) {
    const auto kernel = std::ranges::find(plan.kernels, estimate.name, &Kernel::name);
    if (kernel == plan.kernels.end() || !is_own(kernel->implementation)) continue;
    estimate.time -= std::min(gpu.constants.launch.overlap, 0.5 * estimate.time);
  }
}

}  // namespace fuseline
