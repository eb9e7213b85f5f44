// What scans have in common: how a block's text calls one.
#pragma once

#include "model/operators/attributes.h"
#include "model/operators/operator_call.h"

namespace fuseline {

// From heads, groups and chunk of the call, and the widths of its operands x, decay, k, q.
ScanShape scan_of_call(OperatorCall& call);

}  // namespace fuseline
