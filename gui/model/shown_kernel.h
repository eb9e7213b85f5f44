// The kernel that views of one kernel show.
#pragma once

#include <cstddef>

#include "gui/model/workbench.h"

namespace fuseline::gui {

// Of the shown run: the launch that is selected, else one that what is selected belongs to, else
// the one that takes longest. 0 where there is none.
std::size_t kernel_to_show(const Workbench& bench);

}  // namespace fuseline::gui
