// Rows of activations as codes, each row or each group of its columns with a scale of its own:
//   scale = max |x| / largest code, code = x / scale rounded
#pragma once

#include "model/graph.h"
#include "model/operators/operator.h"
#include "model/reference.h"

namespace fuseline {

// Columns that share a scale: all of the row where the format has no groups.
std::int64_t coded_columns(const Op& op);

void row_codes_reference(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out);

// The program from max |x| of each row or group on; returns the scale, and stores the codes.
Value codes_by_largest(Emitter& e, const Op& op, Value x, Value most);

}  // namespace fuseline
