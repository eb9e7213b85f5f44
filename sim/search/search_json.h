// What a search found, for programs.
#pragma once

#include <string>

#include "sim/report/prediction.h"
#include "sim/search/search.h"

namespace fuseline {

// Schema "fuseline.search/1".
std::string search_json(const PredictionCase& c, const SearchResult& result);

}  // namespace fuseline
