#include "gui/model/shown_kernel.h"

#include <algorithm>

namespace fuseline::gui {

std::size_t kernel_to_show(const Workbench& bench) {
  const RunId run = bench.shown_run();
  const Thing& chosen = bench.selection().selected;
  if (chosen.kind == ThingKind::kernel && chosen.run == run) return chosen.kernel;
  const Highlight linked = highlight(bench.results(), chosen);
  const auto found = linked.kernels.find(run);
  if (found != linked.kernels.end() && !found->second.empty() && chosen.kind != ThingKind::run)
    return *found->second.begin();
  const RunView* view = bench.results().find(run);
  if (view == nullptr || !view->ok()) return 0;
  const auto& kernels = view->result->kernels;
  const auto longest = std::ranges::max_element(
      kernels, {}, [](const KernelRow& k) { return k.estimate.time.value(); });
  return longest == kernels.end() ? 0 : static_cast<std::size_t>(longest - kernels.begin());
}

}  // namespace fuseline::gui
