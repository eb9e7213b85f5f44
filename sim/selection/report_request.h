// What `report` is asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/report/html_report.h"
#include "sim/selection/selection.h"

namespace fuseline {

// Predicts and explains every policy of the selection. `measurements`: a folder or file in the
// place of the scenario's. InputError: as resolve_selection; measurements that cannot be read.
ReportedCase report_case(const std::optional<std::string>& scenario_path,
                         const SelectionWords& words,
                         const std::optional<std::string>& measurements,
                         const std::function<void(const std::string&, double)>& progress = {});

}  // namespace fuseline
