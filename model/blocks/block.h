// Builders of the block graph from a model's dimensions. Tensor shapes are in
// model/config/config.h's letters; weights are [out, in]. Sizes must have passed check_config and
// check_workload.
#pragma once

#include "model/config/config.h"
#include "model/graph.h"

namespace fuseline {

// One Transformer block, in the family's order of operators.
//   forward  B sequences of T tokens, causal attention among themselves.
//   decode   T new tokens a sequence; their keys and values are appended to cache_k and cache_v
//            [B·S, Hkv·d], which attention then reads. A sliding window narrows what it reads to
//            the last min(S, window + T - 1) tokens of each sequence.
//   train    as forward, then the backward pass of backward.h with its default options.
// Main tensors: x [M, D] input, y [M, D] output; in train also dy input, dx and every weight's
// gradient outputs.
Graph build_block(const ModelConfig& config, const Workload& workload);

// Embedding: ids [M, 1] -> x [M, D]; GPT-like models add a position row. The table's bytes are
// those of the rows gathered, at most min(M, V). In train also dx input and the gradients of the
// tables outputs.
Graph build_entry(const ModelConfig& config, const Workload& workload);

// Final norm and LM head: x [R, D] -> logits [R, V]. Rows R are the tokens whose logits serving
// needs: the last of each sequence in forward (R = B), all new tokens in decode (R = M). In train
// all tokens; targets [M, 1] input and loss [M, 1] (fp32, one number a token) output in place of
// the logits; its gradient dloss [M, 1] is an input (1/M each for the gradient of the mean), dx and
// the weights' gradients outputs.
Graph build_exit(const ModelConfig& config, const Workload& workload);

}  // namespace fuseline
