// Attention in one kernel: scores, softmax and context by online softmax, or their gradient.
#pragma once

#include <vector>

#include "model/emit.h"

namespace fuseline {

// `ops` in dependency order; what precedes the forward mainloop is done to Q, K and V as they are
// loaded.
Program attention_program(Emitter& e, const std::vector<OpId>& ops);

}  // namespace fuseline
