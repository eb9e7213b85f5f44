// What train prints.
#pragma once

#include <string>

#include "model/config/config.h"
#include "sim/training/verdict.h"

namespace fuseline {

struct TrainedModel {
  ModelConfig model;
  Workload workload;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
};

std::string training_table(const TrainedModel& what, const training::Training& training,
                           const training::Verdict& verdict);

// {"schema":"fuseline.training/1", ...}: docs/cli.md lists the keys.
std::string training_json(const TrainedModel& what, const training::Training& training,
                          const training::Verdict& verdict);

}  // namespace fuseline
