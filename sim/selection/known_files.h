// Models and GPUs that were read before: for many selections of one request, such as a grid's
// cells.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "sim/selection/selection.h"

namespace fuseline {

// From several threads at once. A name is read once; what cannot be read is tried again.
class KnownFiles {
 public:
  template <class Load>
  ModelConfig model(const std::string& name, Load load) {
    return known(models_, name, load);
  }
  template <class Load>
  Gpu gpu(const std::string& name, Load load) {
    return known(gpus_, name, load);
  }

 private:
  template <class Files, class Load>
  auto known(Files& files, const std::string& name, Load load) {
    const std::scoped_lock lock(mutex_);
    const auto found = files.find(name);
    return found != files.end() ? found->second : files.emplace(name, load(name)).first->second;
  }

  std::mutex mutex_;
  std::map<std::string, ModelConfig> models_;
  std::map<std::string, Gpu> gpus_;
};

// resolve_selection() of a scenario that was read before. All selections that share `known` must be
// of the same scenario.
Selection resolve_selection(const std::optional<Scenario>& read,
                            const std::optional<std::string>& scenario_path,
                            const SelectionWords& texts, KnownFiles& known);

}  // namespace fuseline
