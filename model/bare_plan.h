// Plans that are only asked what is in which kernel.
#pragma once

#include "model/custom_fusion.h"
#include "model/policy.h"

namespace fuseline {

// make_custom_plan() without the notes: why each edge is on chip or not takes about half of its
// time. InputError as there.
Plan make_bare_plan(const Graph& graph, const CustomFusion& custom);

}  // namespace fuseline
