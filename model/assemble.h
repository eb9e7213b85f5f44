// Groups of operators become a plan: ordered, lowered, every tensor with a home, every edge with a
// reason.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/grouping.h"

namespace fuseline {

struct PlanParts {
  std::string policy;
  Graph graph;
  Graph block{};  // before any rewrite
  Groups groups;
  Implementation (*implement)(const Graph&, const std::vector<OpId>&) = nullptr;
  FrameworkLaunches (*beside)(const Graph&, const std::vector<OpId>&) = nullptr;
  FusionRule rule;          // for the reasons
  bool persistent = false;  // the groups are phases of one kernel
  std::vector<std::string> rewrites;
  Preparation preparation;
  Target target{};      // for the reasons
  bool reasons = true;  // notes; without them a plan is made much faster
};

// InternalError when the groups cannot be ordered or lowered.
Plan assemble(PlanParts parts);

}  // namespace fuseline
