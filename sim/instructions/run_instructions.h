// The executor's way through a block's instructions: SMs go on one at a time, in random legal
// orders, and compute what the GPU's kernel computes.
//
// It proves more than the numbers of one order. Every element in memory remembers who wrote it, and
// every thread of work knows, through the counters that it waited for, what has surely happened
// before. A read whose write is not among that is a race, also in an order in which the number
// was there in time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/instructions/instructions.h"
#include "sim/executor/memory.h"

namespace fuseline::executor {

struct InstructionRun {
  std::unique_ptr<Memory> memory;    // the plan's tensors after the last instruction
  std::string deadlock{};            // who waits for what when no SM can go on; empty: all ended
  std::vector<std::string> races{};  // the first few
  [[nodiscard]] bool good() const { return deadlock.empty() && races.empty(); }
};

// `ring`: slices that a loader is ahead of its consumer at most. `inputs` as execute() takes them.
InstructionRun run_instructions(const Plan& plan, const BlockInstructions& instructions,
                                const Inputs& inputs, std::uint64_t seed, int ring = 6);

}  // namespace fuseline::executor
