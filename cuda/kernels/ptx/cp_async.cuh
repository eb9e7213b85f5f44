// Ampere's asynchronous copy: 16 bytes per thread from global to shared memory, past the registers.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

// Copies the first `bytes` (0 to 16) and fills the rest of the 16 bytes with zeros.
FUSELINE_DEVICE void cp_async_16(u32 to, const void* from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
FUSELINE_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` of the thread's groups are still under way.
template <int pending>
FUSELINE_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace fuseline::gpu
