// Results whose rows lie apart in runs (the cache rows of new tokens, one stream's rows of joint
// sequences): no matrix, so a kernel leaves them in a workspace and a launch of its own copies
// them.
#pragma once

#include <memory>

#include "cuda/run/launch.h"

namespace fuseline::cuda {

bool lies_apart(const Operand& operand);

// The operand's rows side by side, and the launch that copies them to their places.
struct RowsApart {
  GpuMatrix workspace;
  std::unique_ptr<Launch> copy;  // owns the workspace
};
RowsApart rows_apart(const LaunchContext& context, const Operand& operand);

}  // namespace fuseline::cuda
