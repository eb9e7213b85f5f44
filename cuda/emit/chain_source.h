// The kernel of a chain of two products (model/chain.h, cuda/kernels/chain.cuh) as CUDA source:
// both programs' epilogues in front of the fixed mainloop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/emit/fields.h"
#include "model/plan.h"
#include "sim/kernels/chain_kernel.h"

namespace fuseline::cuda {

inline constexpr std::int64_t chain_threads = 256;  // of a thread block

struct ChainKernelSource {
  Source source;
  std::string function;              // the extern "C" kernel
  std::vector<Field> first, second;  // of the two epilogues
  ChainLayout layout;
  std::int64_t shared_bytes = 0;  // dynamic shared memory of a thread block
};

// The kernel's one parameter: five pointers and eight numbers, then both epilogues.
struct ChainArguments {
  StructLayout whole;
  StructLayout first, second;  // of the fields, from the epilogue's place on
};
ChainArguments chain_arguments(const ChainKernelSource& kernel);

// Why the mainloop does not run the kernel; empty: it does. A thread block of the target must have
// enough shared memory.
std::string chain_not_built(const Graph& graph, const Kernel& kernel, const ChainLayout& layout,
                            std::int64_t shared_bytes_per_block);

// Asserts that chain_not_built() is empty. The same text for Ampere and Hopper.
ChainKernelSource chain_kernel_source(const Graph& graph, const Kernel& kernel,
                                      const ChainLayout& layout, const std::string& title);

}  // namespace fuseline::cuda
