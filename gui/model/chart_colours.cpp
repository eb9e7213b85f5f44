#include "gui/model/chart_colours.h"

#include "model/error.h"

namespace fuseline::gui {

namespace {

const RunView* prediction_of(const Results& results, const Run& measured) {
  for (const RunView& v : results.runs) {
    if (!v.run.is_measurement() && v.run.policy == measured.policy &&
        v.run.setup == measured.setup) {
      return &v;
    }
  }
  return nullptr;
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
  const RunView* view = results.find(run);
  // A measurement has the colour of the prediction that it stands beside.
  if (view != nullptr && view->run.is_measurement() && run != results.baseline) {
    if (const RunView* twin = prediction_of(results, view->run)) run = twin->run.id;
  }
  if (run == results.baseline) return {ColourRole::baseline, 0};
  int place = 0;
  for (const RunView& v : results.runs) {
    if (v.run.id == run) break;
    const bool has_own = !v.run.is_measurement() || prediction_of(results, v.run) == nullptr;
    if (v.run.id != results.baseline && has_own) ++place;
  }
  return {ColourRole::run, place};
}

}  // namespace fuseline::gui
