// Which colour role stands for what in all views.
#pragma once

#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "model/graph.h"

namespace fuseline::gui {

ColourRole role_of(KernelKind kind);
ColourRole role_of(Role tensor_role);
ColourRole role_of(Bound bound);

// The run's own colour: the baseline's, or its place in the list.
Colour colour_of_run(const Results& results, RunId run);

}  // namespace fuseline::gui
