// Which colour role stands for what in all views.
#pragma once

#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "model/graph.h"

namespace fuseline::gui {

ColourRole role_of(KernelKind kind);
ColourRole role_of(Role tensor_role);
ColourRole role_of(Bound bound);

// The run's own colour: the baseline's, or its place in the list. A measurement has that of the
// prediction of the same policy, whichever of the two is pinned or the baseline.
Colour colour_of_run(const Results& results, RunId run);

}  // namespace fuseline::gui
