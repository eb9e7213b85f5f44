#include "sim/kernels/kernel_estimate.h"

#include "base/error.h"

namespace fuseline {

const char* name_of(Bound bound) {
  switch (bound) {
    case Bound::tensor:
      return "tensor";
    case Bound::hbm:
      return "hbm";
    case Bound::l2:
      return "l2";
    case Bound::smem:
      return "smem";
    case Bound::launch:
      return "launch";
    case Bound::sync:
      return "sync";
  }
  FUSELINE_ASSERT(false, "bound");
}

}  // namespace fuseline
