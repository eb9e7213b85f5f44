// A block's instructions as events: when each of them begins and ends on a GPU, and so the time of
// the launch.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "model/instructions/instructions.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

struct InstructionEvent {
  Seconds begin;  // the consumer is done with the one before
  Seconds end;    // its results are in memory
};

struct InstructionEvents {
  std::vector<std::vector<InstructionEvent>> sms;  // as BlockInstructions::sms
  Seconds time;                                    // of the launch
};

// Every SM loads at its share of the sustained bandwidth, `ring` slices ahead at most; a slice is
// consumed at the speed of shared memory. A wait ends one grid barrier's time after the last of its
// counters' additions. InternalError when instructions wait for each other.
InstructionEvents simulate_instructions(const BlockInstructions& all, const Gpu& gpu, int ring);

}  // namespace fuseline
