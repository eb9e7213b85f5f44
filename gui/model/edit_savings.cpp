#include "gui/model/edit_savings.h"

#include <fmt/format.h>

#include "gui/model/delta.h"

namespace fuseline::gui {

namespace {

// What goes from `from` to `to`, in parts of `whole`.
template <class Amount>
std::string part_text(const char* what, Amount from, Amount to, Amount whole) {
  const Delta part = delta_of(whole, whole + (to - from));
  return fmt::format("{} {} ({})", what, part.absolute_text, part.relative_text);
}

Bytes hbm_of(const PlanEstimate& e) { return e.hbm_read + e.hbm_write; }

std::string parts_text(const PlanEstimate& from, const PlanEstimate& to,
                       const PlanEstimate& whole) {
  return part_text("HBM traffic", hbm_of(from), hbm_of(to), hbm_of(whole)) + ", " +
         part_text("time", from.time, to.time, whole.time);
}

// Of what an edit makes of the time, in parts of `whole`; where that is next to nothing, of bytes.
Colour colour_of_edit(const PlanEstimate& from, const PlanEstimate& to, const PlanEstimate& whole) {
  const Delta time = delta_of(whole.time, whole.time + (to.time - from.time));
  if (time.size != DeltaSize::neutral) return time.colour;
  return delta_of(hbm_of(whole), hbm_of(whole) + (hbm_of(to) - hbm_of(from))).colour;
}

}  // namespace

Saving saving_between(const PlanEstimate& before, const PlanEstimate& after) {
  return {.hbm = hbm_of(before) - hbm_of(after),
          .time = before.time - after.time,
          .kernels_hbm = {},
          .kernels_time = {},
          .text = parts_text(before, after, before),
          .colour = colour_of_edit(before, after, before)};
}

Saving saving_of_edit(const std::string& policy, const PlanEstimate& before,
                      const PlanEstimate& like, const PlanEstimate& after) {
  return {.hbm = hbm_of(like) - hbm_of(after),
          .time = like.time - after.time,
          .kernels_hbm = hbm_of(before) - hbm_of(like),
          .kernels_time = before.time - like.time,
          .text = fmt::format("{}; custom's kernels in place of those of {}: {}",
                              parts_text(like, after, before), policy,
                              parts_text(before, like, before)),
          .colour = colour_of_edit(like, after, before)};
}

}  // namespace fuseline::gui
