// Sums of rows at their places look for nothing: whoever sorts them says where each of them went.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite store_places();

}  // namespace fuseline
