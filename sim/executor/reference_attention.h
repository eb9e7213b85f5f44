// Attention of the fp64 reference head by head, forward and backward: scores, probabilities and
// their gradients, [B·H·T, S] each, are never whole in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/reference.h"
#include "sim/executor/parallel.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

// The steps of one attention, operators of a graph; the last four are null in a forward graph.
struct AttentionSteps {
  const Op* scores = nullptr;
  const Op* softmax = nullptr;
  const Op* context = nullptr;
  const Op* d_probs = nullptr;
  const Op* d_softmax = nullptr;
  const Op* d_v = nullptr;
  const Op* d_q = nullptr;
  const Op* d_k = nullptr;

  [[nodiscard]] bool holds(const Op& op) const;
};

// Attentions whose [B·H·T, S] tensors only their own steps read. The graph must outlive them.
std::vector<AttentionSteps> streamed_attentions(const Graph& graph);

// Writes the context; Q, K and V are computed or given.
void attend(const Graph& graph, const AttentionSteps& steps, const Inputs& inputs,
            TensorValues& values, const Workers& workers);
// Writes dQ, dK and dV; besides these, the gradient of the context is there.
void attend_backward(const Graph& graph, const AttentionSteps& steps, const Inputs& inputs,
                     TensorValues& values, const Workers& workers);

// fp64 numbers that one thread holds in these calls.
std::int64_t doubles_per_thread(const AttentionShape& attention);

}  // namespace fuseline::executor
