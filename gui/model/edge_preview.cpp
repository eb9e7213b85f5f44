#include "gui/model/edge_preview.h"

#include <fmt/format.h>

#include "base/error.h"
#include "gui/model/fusion_edits.h"
#include "gui/model/fusion_search.h"
#include "gui/model/run_edits.h"

namespace fuseline::gui {

EdgePreview preview_edge(const Document& document, const RunView& run, const OnChipEdge& edge,
                         ResultCache& cache, const std::stop_token& stop) {
  FUSELINE_ASSERT(run.ok() && run.result->predicted && run.result->plan, run.run.name);
  EdgePreview preview;
  preview.splits = share_kernel(*run.result->plan, edge);
  const std::string what = (preview.splits ? "Split " : "Fuse ") + arrow_text(edge);
  const RunEdit edit =
      edit_run(document, run.run.id, [&](const Graph& block, const CustomFusion& custom) {
        return toggle_edge(block, custom, edge, Suggest::no);
      });
  throw_if_stopped(stop);
  if (!edit.outcome.legal) {
    preview.text = fmt::format("{}: not possible, {}", what, edit.outcome.reason);
    return preview;
  }
  const std::shared_ptr<const RunResult> after =
      result_of(edit.document, edit.document.runs.at(edit.run), cache);
  throw_if_stopped(stop);
  if (after->problem) {
    preview.text = fmt::format("{}: not possible, {}", what, after->problem->text);
    return preview;
  }
  preview.legal = true;
  preview.saving = saving_between(*run.result->predicted, *after->predicted);
  if (edit.like) {
    const std::shared_ptr<const RunResult> like = result_of(document, *edit.like, cache);
    preview.saving =
        saving_of_edit(run.run.policy, *run.result->predicted, *like->predicted, *after->predicted);
  }
  preview.text = fmt::format("{}: {}", what, preview.saving.text);
  return preview;
}

}  // namespace fuseline::gui
