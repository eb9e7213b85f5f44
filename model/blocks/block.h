// The blocks of a model as graphs: its layers, and what stands before and behind them. Their texts
// are in scenarios/blocks. Sizes must have passed check_config and check_workload.
#pragma once

#include <memory>
#include <string>

#include "model/config/config.h"
#include "model/graph.h"

namespace fuseline {

// One block of the model: the first of config.blocks, or `use`, one of them.
//   forward  B sequences of T tokens.
//   decode   T new tokens a sequence; what the block's caches hold of them is appended to cache_k,
//            cache_v, ... [B·S, ...], which attention then reads. A sliding window narrows what it
//            reads to the last min(S, window + T - 1) tokens of each sequence.
//   train    as forward, then the backward pass of backward.h with its default options.
// InputError where the text and the model's sizes do not fit, with the text's line.
Graph build_block(const ModelConfig& config, const Workload& workload);
Graph build_block(const ModelConfig& config, const BlockUse& use, const Workload& workload);

// What stands before the layers: ids [M, 1] -> x [M, D]; some models add a position row. The
// table's bytes are those of the rows gathered, at most min(M, V). In train also dx input and the
// gradients of the tables outputs. Asserts that the model has an entry.
Graph build_entry(const ModelConfig& config, const Workload& workload);
// A block before or behind layers by its name, as those are; with the workload of these layers.
Graph build_end(const ModelConfig& config, const std::string& block, const Workload& workload);

// Final norm and LM head: x [R, D] -> logits [R, V]. Rows R are the tokens whose logits serving
// needs: the last of each sequence in forward (R = B), all new tokens in decode (R = M). In train
// all tokens; targets [M, 1] input and loss [M, 1] (fp32, one number a token) output in place of
// the logits; its gradient dloss [M, 1] is an input (1/M each for the gradient of the mean), dx and
// the weights' gradients outputs. Asserts that the model has an exit.
Graph build_exit(const ModelConfig& config, const Workload& workload);

// The text of a block that a model uses.
std::shared_ptr<const BlockText> text_of(const BlockUse& use);
// Whether the block keeps what decode reads again: keys and values of earlier tokens.
bool keeps_cache(const BlockUse& use);
// Whether it sends tokens to experts.
bool has_experts(const BlockUse& use);
// What the layers of that kind run over: an encoder has tokens of its own.
Workload workload_of(const ModelConfig& config, const BlockUse& use, Workload workload);
// Whether any block of the model's layers has the parameter.
bool has_parameter(const ModelConfig& config, const std::string& name);
// The same of what stands before and behind the layers.
bool ends_have_parameter(const ModelConfig& config, const std::string& name);
// What the model gives the parameters of one of its blocks.
ParameterValues block_values(const ModelConfig& config, const BlockUse& use);

}  // namespace fuseline
