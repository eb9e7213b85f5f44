#include "gui/model/chart_colours.h"

#include "base/error.h"

namespace fuseline::gui {

namespace {

// How near the prediction is to what was measured; whatever is pinned, it is of the same policy.
int nearness(const RunView& prediction, const RunView& measured) {
  const bool known = prediction.result != nullptr && measured.result != nullptr;
  if (known && same_block(*prediction.result, *measured.result)) return 2;
  return prediction.run.setup == measured.run.setup ? 1 : 0;
}

// The run whose colour this one has: of a measurement the prediction that it stands beside.
RunId owner_of(const Results& results, const RunView& view) {
  const RunView* found = nullptr;
  for (const RunView& v : results.runs) {
    if (!view.run.is_measurement() || v.run.is_measurement() || v.run.policy != view.run.policy)
      continue;
    if (found == nullptr || nearness(v, view) > nearness(*found, view)) found = &v;
  }
  return found == nullptr ? view.run.id : found->run.id;
}

}  // namespace

ColourRole role_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return ColourRole::kind_gemm;
    case KernelKind::attention:
      return ColourRole::kind_attention;
    case KernelKind::norm:
      return ColourRole::kind_norm;
    case KernelKind::pointwise:
      return ColourRole::kind_pointwise;
    case KernelKind::reduction:
      return ColourRole::kind_reduction;
    case KernelKind::block:
      return ColourRole::kind_block;
    // The palette has six kinds; those below share the colour of what they are most like.
    case KernelKind::scan:
      return ColourRole::kind_attention;
    case KernelKind::conv:
    case KernelKind::route:
      return ColourRole::kind_pointwise;
    case KernelKind::collective:
      return ColourRole::kind_block;
  }
  FUSELINE_ASSERT(false, "kind of kernel");
}

ColourRole role_of(Role tensor_role) {
  switch (tensor_role) {
    case Role::input:
      return ColourRole::tensor_input;
    case Role::weight:
      return ColourRole::tensor_weight;
    case Role::table:
      return ColourRole::tensor_table;
    case Role::cache:
      return ColourRole::tensor_cache;
    case Role::activation:
      return ColourRole::tensor_activation;
    case Role::output:
      return ColourRole::tensor_output;
  }
  FUSELINE_ASSERT(false, "role of a tensor");
}

ColourRole role_of(Bound bound) {
  switch (bound) {
    case Bound::tensor:
      return ColourRole::bound_tensor;
    case Bound::hbm:
      return ColourRole::bound_hbm;
    case Bound::l2:
      return ColourRole::bound_l2;
    case Bound::smem:
      return ColourRole::bound_smem;
    case Bound::launch:
      return ColourRole::bound_launch;
    case Bound::sync:
      return ColourRole::bound_sync;
  }
  FUSELINE_ASSERT(false, "bound");
}

Colour colour_of_run(const Results& results, RunId run) {
  const auto owner = [&](RunId id) {
    const RunView* view = results.find(id);
    return view == nullptr ? id : owner_of(results, *view);
  };
  const RunId wanted = owner(run), baseline = owner(results.baseline);
  if (wanted == baseline) return {ColourRole::baseline, 0};
  int place = 0;
  for (const RunView& v : results.runs) {
    if (v.run.id == wanted) break;
    if (v.run.id != baseline && owner_of(results, v) == v.run.id) ++place;
  }
  return {ColourRole::run, place};
}

}  // namespace fuseline::gui
