// The partial statistics of a norm need no launch of their own that finishes them: every tile whose
// epilogue scales its rows sums the partials of these rows again, a few numbers a row. Nothing else
// changes in the graph, so a finisher may still be a kernel.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite finish_in_epilogues();

}  // namespace fuseline
