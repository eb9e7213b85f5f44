// Plans that were measured as files: blocks with a kernel of a kind that is judged apart. Such a
// folder holds plans.csv beside the plans: gpu, model, phase, batch, seq, context, plan (a file),
// plan_us, rival (a policy), rival_us and kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/plan.h"
#include "sim/judge/band_fit.h"

namespace fuseline {

struct MeasuredPlan {
  std::string gpu, model;
  Workload workload;
  std::shared_ptr<const Plan> plan;
  std::string rival;  // a policy whose plan ran in turns with it
  Seconds time, rival_time;
  std::string kind;  // of kinds_judged_apart()
};

// InputError: unreadable, a plan that is illegal, a kind that no kernel of the plan has.
std::vector<MeasuredPlan> load_measured_plans(const std::string& csv_file);

// How far predictions of such a folder's plans were off: of the plan's time, of its gain over the
// rival, and of its kernel of that kind. That kernel was not timed alone. What the plan took longer
// beside the rival than was promised counts as the kernel's.
std::vector<Residual> plan_rows(const std::string& folder);

}  // namespace fuseline
