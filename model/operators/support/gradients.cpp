#include "model/operators/support/gradients.h"

namespace fuseline {

void element_wise_gradient(Adjoint& a, OpKind kind) {
  const Op& op = a.op();
  const Operand x = a.forward_value(op.reads[0]);
  a.emit("d_" + op.name, kind, {a.dy(), x}, {a.target(0)}, op.attributes);
}

}  // namespace fuseline
