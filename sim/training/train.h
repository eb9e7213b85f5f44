// Trains one model on the project's own text several times, through different plans and in fp64,
// with the same weights to start from and the same batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/config/config.h"
#include "sim/executor/parallel.h"
#include "sim/gpu/gpu.h"
#include "sim/training/adamw.h"

namespace fuseline::training {

struct TrainOptions {
  std::int64_t steps = 300;
  std::uint64_t seed = 1;  // of text, batches and initial weights
  AdamWOptions optimizer{};
  executor::Workers workers{};
  // What is being done, and the share of all runs.
  std::function<void(const std::string&, double)> progress{};
  // For tests of the verdict: may change a gradient of a policy's run before the optimizer sees it.
  std::function<void(const std::string& policy, const Parameter&, std::vector<float>&)> tamper{};
};

// The losses of one run, step by step: the mean over the batch, before the step's update.
struct Curve {
  std::string name;  // the policy, or one of the names below
  std::vector<double> losses;
  Seconds time;
};
inline constexpr const char* kFp64Run = "fp64";
// The fp64 run again, each initial weight changed by up to one rounding of the storage type: how
// far a change that small drives two curves apart.
inline constexpr const char* kNudgedRun = "fp64-nudged";

struct Training {
  std::int64_t parameters = 0;
  std::vector<Curve> curves;  // unfused, the other policies in the order asked for, fp64, nudged
};

// `unfused` is always run: the others are judged beside it. InputError: a policy that does not
// train, a vocabulary smaller than the text's, or more memory than the machine has left. Cancelled
// when workers.stop was set. A loss that is not finite ends its run's curve there.
Training train(const ModelConfig& config, const Workload& workload,
               const std::vector<std::string>& policies, const Gpu& gpu,
               const TrainOptions& options);

// Peak memory of the runs, one after the other: plans and fp64 values of all blocks, weights and
// optimizer.
Bytes training_need(const ModelConfig& config, const Workload& workload,
                    const std::vector<std::string>& policies);

// "step,unfused,coda,fp64,fp64-nudged", a line for each step from 1; empty where a curve has ended.
std::string curves_csv(const Training& training);

}  // namespace fuseline::training
