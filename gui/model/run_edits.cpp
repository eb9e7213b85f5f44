#include "gui/model/run_edits.h"

#include "base/error.h"
#include "gui/model/run_plan.h"
#include "model/blocks/block.h"

namespace fuseline::gui {

RunEdit edit_run(const Document& document, RunId id, const EditOf& of) {
  RunEdit edit{.outcome = {}, .run = id, .document = document, .like = {}};
  const Run& run = document.runs.at(id);
  if (run.is_measurement()) {
    edit.outcome.reason = run.name + " was measured: edit a prediction";
    return edit;
  }
  try {
    const PredictionCase c = resolve(setup_of(document, run));
    const Graph block = build_block(c.model, c.workload);
    if (run.is_custom()) {
      edit.outcome = of(block, run.custom);
    } else {
      Run like{.name = "custom from " + run.policy, .policy = kCustomPolicy, .setup = run.setup};
      like.custom =
          custom_like(run.has_plan() ? plan_of(run, c) : make_plan(run.policy, block), block);
      edit.like = like;
      edit.outcome = of(block, like.custom);
      if (edit.outcome.legal) edit.run = edit.document.runs.add(std::move(like));
    }
  } catch (const InputError& error) {
    edit.outcome = {};
    edit.outcome.reason = error.what();
  }
  if (edit.outcome.legal) edit.document.runs.set_custom(edit.run, edit.outcome.custom);
  return edit;
}

}  // namespace fuseline::gui
