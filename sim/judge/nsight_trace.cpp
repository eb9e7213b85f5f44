#include "sim/judge/nsight_trace.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/judge/validation.h"

namespace fuseline {

namespace {

bool same_launch(const NsightKernel& a, const NsightKernel& b) {
  return a.kernel.kernel == b.kernel.kernel && a.kernel.grid == b.kernel.grid &&
         a.kernel.block == b.kernel.block;
}

// A second kernel of the same library call.
bool is_companion(const MeasuredKernel& k) {
  return k.kernel.find("splitKreduce") != std::string::npos ||
         k.kernel.find("lean_reduction") != std::string::npos ||
         k.kernel.find("splitkv_combine") != std::string::npos;
}

// The step of the block that all its operators belong to; empty when there are several.
std::string site_of(const Plan& plan, const Kernel& kernel) {
  std::string site;
  for (const OpId op : kernel.ops) {
    const std::string& its = plan.graph.op(op).site;
    if (!site.empty() && its != site) return {};
    site = its;
  }
  return site;
}

std::vector<KernelKind> reversed(std::vector<KernelKind> kinds) {
  std::reverse(kinds.begin(), kinds.end());
  return kinds;
}

// Pairs that are the same whether the lists are aligned from the front or from the back.
std::map<std::size_t, std::size_t> certain_pairs(const std::vector<KernelKind>& measured,
                                                 const std::vector<KernelKind>& planned) {
  std::map<std::size_t, std::size_t> from_back, certain;
  for (const KernelPair& p : align_kernels(reversed(measured), reversed(planned))) {
    from_back[measured.size() - 1 - p.measured] = planned.size() - 1 - p.predicted;
  }
  for (const KernelPair& p : align_kernels(measured, planned)) {
    const auto found = from_back.find(p.measured);
    if (found != from_back.end() && found->second == p.predicted) certain.insert(*found);
  }
  return certain;
}

}  // namespace

std::size_t repetition_length(std::span<const NsightKernel> kernels) {
  const std::size_t count = kernels.size();
  for (std::size_t length = 1; length <= count / 2; ++length) {
    if (count % length != 0) continue;
    const bool repeats = std::equal(kernels.begin() + static_cast<std::ptrdiff_t>(length),
                                    kernels.end(), kernels.begin(), same_launch);
    if (repeats) return length;
  }
  return count;
}

SiteAssignment assign_sites(std::vector<MeasuredKernel>& kernels, const Plan& plan) {
  std::vector<std::size_t> own;  // indices of kernels that are no companions
  std::vector<KernelKind> measured, planned;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (i > 0 && is_companion(kernels[i])) continue;
    own.push_back(i);
    measured.push_back(kernels[i].kind());
  }
  for (const Kernel& k : plan.kernels) planned.push_back(k.kind);

  SiteAssignment result{.named = 0, .same_kernels = measured == planned};
  for (const auto& [m, p] : certain_pairs(measured, planned)) {
    std::string& site = kernels[own[m]].site;
    if (site.empty()) site = site_of(plan, plan.kernels[p]);
  }
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    if (is_companion(kernels[i]) && kernels[i].site.empty()) kernels[i].site = kernels[i - 1].site;
  }
  result.named = static_cast<std::size_t>(std::count_if(
      kernels.begin(), kernels.end(), [](const MeasuredKernel& k) { return !k.site.empty(); }));
  return result;
}

}  // namespace fuseline
