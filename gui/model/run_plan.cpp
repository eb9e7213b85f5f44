#include "gui/model/run_plan.h"

#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "sim/selection/plan_file.h"

namespace fuseline::gui {

Run run_of_plan(const std::string& path) {
  return {.policy = plan_of_file(read_program_file(path))->policy, .plan = path};
}

std::string name_of_plan(const Run& run) {
  return run.plan.empty() ? "the plan of " + run.name : run.plan;
}

Plan plan_of(const Run& run, const PredictionCase& c) {
  if (!run.has_plan())
    return make_plan(run.policy, c.model, c.workload, run.custom, plan_target(c.gpu));
  const std::string file = name_of_plan(run);
  const auto plan = plan_of_file(run.plan_text.empty() ? read_program_file(run.plan)
                                                       : read_program_text(run.plan_text, file));
  check_same_block(*plan, build_block(c.model, c.workload), c.model.name, file, "plan");
  return *plan;
}

}  // namespace fuseline::gui
