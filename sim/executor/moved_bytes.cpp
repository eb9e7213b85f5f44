#include "sim/executor/moved_bytes.h"

namespace fuseline::executor {

namespace {

MovedBytes bytes_of_kernels(const VerifiedPolicy& policy,
                            std::vector<RequestedBytes> CountedKernel::*moved) {
  MovedBytes sum;
  for (const CountedKernel& kernel : policy.kernels) {
    for (const RequestedBytes& bytes : kernel.*moved) {
      sum.loaded += bytes.loaded;
      sum.stored += bytes.stored;
    }
  }
  return sum;
}

}  // namespace

MovedBytes counted_bytes(const VerifiedPolicy& policy) {
  return bytes_of_kernels(policy, &CountedKernel::counted);
}

MovedBytes predicted_bytes(const VerifiedPolicy& policy) {
  return bytes_of_kernels(policy, &CountedKernel::predicted);
}

}  // namespace fuseline::executor
