// Given tensors in their storage types: random ones, those of a test, and what a plan needs made of
// them.
#pragma once

#include <cstdint>

#include "model/plan.h"
#include "model/reference.h"
#include "sim/executor/parallel.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

// How large the random numbers of a block's inputs are: what arrives of the residual stream, x =
// scale·(shift + normal), and the gradients dy = gradient_scale·normal. One column in twenty of
// both is `outliers` times larger. Other inputs, such as the conditioning of a diffusion model,
// have no such columns: nothing normalises them, and scores made of them would be so large that a
// softmax takes one key, by chance where two are nearly equal. Of a block that does not say which
// of its inputs the layer before makes, all are streams.
struct InputDistribution {
  double outliers = 20;
  double scale = 1;
  double shift = 0;
  double gradient_scale = 1;
};

// Values for all inputs, weights, tables and caches of the graph, distributed as those of
// fuseline::random_inputs: normal, weights scaled by 1/sqrt(K), norm weights about 1, cos and sin
// of RoPE angles, outlier columns in the streams. They depend on the tensor's name and shape, on
// whether it is a stream, and on the seed and distribution only, not on the graph or the threads.
Inputs random_storage(const Graph& graph, std::uint64_t seed, const Workers& workers,
                      const InputDistribution& distribution = {});

// Values rounded to the storage types that the graph's tensors of these names have; other names are
// left out. InputError: the wrong number of elements.
Inputs round_inputs(const Graph& graph, const NamedTensors& values);

// What `plan` is given, from the original block's given tensors: computed in fp64 and rounded once
// to the plan's storage types, reordered as the plan wants them (prepare.h says the same of fp64
// values). Tensors that the plan shares with the block are shared. Given tensors of the plan that
// neither the block nor the preparation knows (the next block's norm weight) are random.
Inputs prepare_inputs(const Plan& plan, const Inputs& original, std::uint64_t seed,
                      const Workers& workers);

}  // namespace fuseline::executor
