// A fusion edit of one run of a document.
#pragma once

#include <functional>
#include <optional>

#include "gui/model/document.h"
#include "gui/model/fusion_edits.h"

namespace fuseline::gui {

using EditOf = std::function<EditOutcome(const Graph& block, const CustomFusion& custom)>;

struct RunEdit {
  EditOutcome outcome;
  RunId run;          // the one that was edited
  Document document;  // after the edit; when it is illegal, as before
  // Of a run of another policy: the custom run like it, without the edit.
  std::optional<Run> like{};
};

// A run of another policy gets a custom run like it first, and that is edited. Wrong setups and
// measurements come back as illegal edits with their reason.
RunEdit edit_run(const Document& document, RunId id, const EditOf& of);

}  // namespace fuseline::gui
