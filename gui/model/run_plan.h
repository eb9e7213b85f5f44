// The plan of a run: its policy's, or that of a file.
#pragma once

#include <string>

#include "gui/model/run.h"
#include "model/plan.h"
#include "sim/report/prediction.h"

namespace fuseline::gui {

// A run of the file's plan. InputError: no plan, with its first mistake.
Run run_of_plan(const std::string& path);

// What messages call the text of a run's plan: its file, or the run's.
std::string name_of_plan(const Run& run);

// InputError: a file that is no plan, or one of another block than the case's.
Plan plan_of(const Run& run, const PredictionCase& c);

}  // namespace fuseline::gui
