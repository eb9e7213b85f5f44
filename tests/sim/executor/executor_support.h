// What the executor's tests share.
#pragma once

#include <string>
#include <vector>

#include "model/policy.h"
#include "sim/gpu.h"

namespace fuseline::executor {

inline std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  return names;
}

inline Gpu executor_gpu() { return load_gpu("h200"); }

}  // namespace fuseline::executor
