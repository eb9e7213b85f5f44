// How a kernel of a plan begins behind the one before it.
#pragma once

#include "element.cuh"

namespace fuseline::gpu {

// Where launches may overlap (programmatic dependent launch, from sm_90 on), a kernel may begin
// once all thread blocks of the one before run or have ended, so that it starts up meanwhile. It
// waits until that kernel has ended before it reads or writes anything but weights, which no kernel
// writes. A kernel that waits ends behind all before it, so that each needs to wait for the last
// one only. Elsewhere nothing happens.
FUSELINE_DEVICE void let_the_next_kernel_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
FUSELINE_DEVICE void wait_for_the_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
FUSELINE_DEVICE void begin_behind_the_kernel_before() {
  let_the_next_kernel_begin();
  wait_for_the_kernel_before();
}

}  // namespace fuseline::gpu
