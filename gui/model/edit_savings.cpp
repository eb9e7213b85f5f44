#include "gui/model/edit_savings.h"

#include <fmt/format.h>

#include "gui/model/delta.h"

namespace fuseline::gui {

Saving saving_between(const PlanEstimate& before, const PlanEstimate& after) {
  const Bytes hbm_before = before.hbm_read + before.hbm_write;
  const Bytes hbm_after = after.hbm_read + after.hbm_write;
  Saving s{.hbm = hbm_before - hbm_after, .time = before.time - after.time, .text = {}};
  const Delta bytes = delta_of(hbm_before, hbm_after), time = delta_of(before.time, after.time);
  s.text = fmt::format("HBM traffic {} ({}), time {} ({})", bytes.absolute_text,
                       bytes.relative_text, time.absolute_text, time.relative_text);
  return s;
}

Saving saving_of_edit(const std::string& policy, const PlanEstimate& before,
                      const PlanEstimate& like, const PlanEstimate& after) {
  Saving s = saving_between(like, after);
  const Delta kernels = delta_of(before.time, like.time);
  if (kernels.size != DeltaSize::neutral) {
    s.text += fmt::format("; custom's kernels in place of those of {}: time {} ({})", policy,
                          kernels.absolute_text, kernels.relative_text);
  }
  return s;
}

}  // namespace fuseline::gui
