// Operands of products whose rows lie apart in runs (one stream's rows of joint sequences): no
// matrix, so where tiles meet two runs, a launch of its own copies the rows to a workspace first.
#pragma once

#include <memory>

#include "cuda/run/launch.h"

namespace fuseline::cuda {

bool lies_apart(const Operand& operand);

// The operand's rows side by side, and the launch that copies them.
struct RowsApart {
  GpuMatrix workspace;
  std::unique_ptr<Launch> copy;  // owns the workspace
};
RowsApart gathered_rows(const LaunchContext& context, const Operand& operand);

}  // namespace fuseline::cuda
