// Why a plan looks the way it does, with what a GPU is predicted to need for it.
#pragma once

#include <string>
#include <vector>

#include "model/explain.h"
#include "sim/block/estimate.h"
#include "sim/report/prediction.h"

namespace fuseline {

// A plan's explanation, and what it is predicted to take.
struct ExplainedPlan {
  Explanation what;
  PlanEstimate estimate;

  // Null where the plan has no kernel of that name.
  [[nodiscard]] const KernelEstimate* kernel(const std::string& name) const;
};

// At fidelity hierarchy. The homes of tensors say what L2 holds.
ExplainedPlan explain_on(const Plan& plan, const Gpu& gpu);

// {"schema":"fuseline.plan/1", ...}: docs/cli.md lists the keys.
std::string explanations_json(const PredictionCase& c, const std::vector<ExplainedPlan>& all);

}  // namespace fuseline
