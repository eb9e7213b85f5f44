// Where the values of a GEMM's epilogue wait: in registers, from which step to which, or in shared
// memory, as what a tile's slab loads. The choice of tiles counts them, and the device code is
// written in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/parts.h"
#include "model/primitives/values.h"
#include "model/program.h"

namespace fuseline {

// Registers of a thread hold the value from the step that makes it to the last that uses it.
// Numbers per row are not among them: a thread keeps them for all its slabs.
struct InRegisters {
  Value value = -1;
  int first = 0, last = 0;
};

// What copies bring into shared memory for a slab: a tile, or a vector along its columns.
struct ThroughShared {
  Value value = -1;
  Reach reach = Reach::tile;
  int each = 2;  // of the value, see each_of
};

// Partial sums that a step leaves, of a value of so many columns.
struct LeftPartials {
  Axis along = Axis::rows;
  int each = 2;
};

struct Placement {
  std::vector<InRegisters> registers;
  std::vector<ThroughShared> shared;
  std::vector<LeftPartials> partials;
  // Steps that store or reduce, so that other threads take part: whole values wait there, while the
  // compiler takes maps between two of them element by element.
  std::vector<int> barriers;
};

// Steps are in the order of the source: loads where they are first wanted in a scope, what works on
// parts of the columns after what works on all of them. InternalError: the program is no GEMM's.
Placement placement_of(const Program& program, const ValueAnalysis& values);

// Whether a step only loads: the source has it where its value is first wanted.
bool is_load(const Primitive& primitive);

}  // namespace fuseline
