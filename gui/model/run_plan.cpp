#include "gui/model/run_plan.h"

#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "sim/selection/plan_file.h"

namespace fuseline::gui {

Run run_of_plan(const std::string& path) {
  return {.policy = plan_of_file(read_program_file(path))->policy, .plan = path};
}

Plan plan_of(const Run& run, const PredictionCase& c) {
  if (run.plan.empty())
    return make_plan(run.policy, c.model, c.workload, run.custom, plan_target(c.gpu));
  const auto plan = plan_of_file(read_program_file(run.plan));
  check_same_block(*plan, build_block(c.model, c.workload), c.model.name, run.plan, "plan");
  return *plan;
}

}  // namespace fuseline::gui
