// The options that predict, explain and compare share.
#pragma once

#include "cli/options.h"
#include "sim/selection/selection.h"

namespace fuseline {

struct SelectionTexts : SelectionWords {
  // Adds --model, --gpu, --phase, --batch, --seq, --context, --dtype, --weights, --activations,
  // --kv, --routing and --policy to the options.
  void add_to(Options& options);
  // Adds --plan.
  void add_plan_to(Options& options);
  // Adds --fidelity, --layers and --launch.
  void add_simulation_to(Options& options);
  // Adds --image, --steps and --guidance.
  void add_image_to(Options& options);
};

}  // namespace fuseline
