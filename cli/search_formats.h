// search --formats: the best plan among number formats of the weights.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/shared_run.h"
#include "sim/search/format_search.h"
#include "sim/selection/search_request.h"

namespace fuseline {

// What --formats and --error-budget say; absent = not said.
struct FormatWords {
  std::optional<std::string> formats, error_budget;
};

// The command's answer: the table of formats (or JSON), then what `shown` says of the best one.
// `best`: the selection and the result of it, for --output. InputError: formats beside --weights,
// --distribution or training; a budget that is no number above 0, that stands alone, or that no
// format keeps.
struct FormatAnswer {
  Selection selection;
  FormatSearch search;
};
FormatAnswer search_formats(const std::optional<std::string>& scenario,
                            const SelectionWords& selection, const SearchWords& words,
                            const FormatWords& formats, SharedRun& run);

std::string formats_text(const FormatAnswer& answer);
// Adds the formats to what search_json() gives of the best one.
std::string formats_json(const FormatAnswer& answer);

}  // namespace fuseline
