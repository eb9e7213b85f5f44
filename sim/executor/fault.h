// Named faults that can be put into an execution, to see that the checks find them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"

namespace fuseline::executor {

enum class FaultKind : std::uint8_t {
  dropped_row_scale,     // a product with one number a row leaves the tile as it was
  missed_partial,        // a sum over a row, or over partials, leaves out the last ones
  swapped_pair,          // the two columns of every pair change places
  wrong_rotation_sign,   // the sine of a rotation has the wrong sign
  stale_tile,            // a GEMM's last tile stores zeros instead of its result
  dropped_residual,      // a sum of two tiles forgets the second
  unnormalised_softmax,  // attention does not divide by the sum of its exponentials
  shifted_mask,          // every query sees one key too few
  // of the backward pass
  missed_column_partial,      // a sum over a column, or over its partials, leaves out the last ones
  swapped_gradient_pair,      // the two columns of every pair of gradients change places
  unscaled_norm_gradient,     // the gradient through a norm lacks the norm's row scale
  dropped_residual_gradient,  // a sum of two gradients forgets the residual branch
  stale_delta,                // attention's gradient does not subtract its row sum
};

struct FaultInfo {
  FaultKind kind;
  std::string name;       // "dropped-row-scale"
  std::string what;       // one line
  bool backward = false;  // happens to training plans only
};
std::vector<FaultInfo> faults();

// InputError with the nearest name, all names listed.
FaultKind parse_fault(const std::string& name);

// The one place of a plan where the fault acts.
struct FaultPoint {
  FaultKind kind;
  std::size_t kernel = 0;
  std::size_t phase = 0;
  bool prologue = false;
  std::size_t primitive = 0;  // of body or prologue; unused by faults of mainloops
};
// Empty when the plan has nothing to which the fault could happen.
std::optional<FaultPoint> find_fault(const Plan& plan, FaultKind kind);

}  // namespace fuseline::executor
