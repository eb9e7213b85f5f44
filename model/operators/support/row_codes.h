// Numbers as codes, each row, or each group of its columns, with a scale of its own:
//   scale = max |x| / largest code, code = x / scale rounded
#pragma once

#include "model/graph.h"
#include "model/operators/operator.h"
#include "model/reference.h"

namespace fuseline {

// What becomes of the numbers; each operator that quantises says it of itself.
struct Coding {
  double largest = 0;        // the code that the largest number of a group becomes
  std::int64_t columns = 0;  // of a group
};

// The first result of `op` are the codes, the second their scales.
void codes_reference(const Coding& coding, const Graph& g, const Op& op, const TensorValues& in,
                     TensorValues& out);

// The program from the numbers and max |x| of each group on; returns the scale, and stores the
// codes.
Value codes_by_largest(Emitter& e, const Coding& coding, const Op& op, Value x, Value most);
// Groups of columns that a tile holds whole, scales included.
void lower_groups(Emitter& e, const Coding& coding, const Op& op);

// quantise_rows and quantise_groups: all columns of a row where the format has no groups.
Coding row_coding(const Op& op);

}  // namespace fuseline
