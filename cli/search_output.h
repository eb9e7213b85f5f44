// What a search found, as text for a terminal.
#pragma once

#include <string>

#include "sim/search/search.h"
#include "sim/selection/selection.h"

namespace fuseline {

std::string search_text(const Selection& s, const SearchResult& result);

}  // namespace fuseline
