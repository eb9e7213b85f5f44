// A line with other operands or values: the walk of the line that changes what it meets.
#pragma once

#include <functional>

#include "model/primitives/primitive.h"
#include "model/program.h"

namespace fuseline {

using ChangeOperand = std::function<void(Operand&)>;
using ChangeValue = std::function<void(Value&)>;

// Calls the functions for each operand and each value of the primitive's line, in order; an empty
// one changes nothing. InternalError: the primitive added no lines (model/programs/syntax.h).
Primitive rewritten(const Primitive& primitive, const ChangeOperand& operand,
                    const ChangeValue& value = {});
// The same of a mainloop's line.
Mainloop rewritten(const Mainloop& mainloop, const ChangeOperand& operand);

}  // namespace fuseline
