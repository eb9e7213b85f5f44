// The reference functions of the operator table, one for each formula. Signature and meaning as in
// OperatorInfo::reference.
#pragma once

#include "model/graph.h"
#include "model/reference.h"

namespace fuseline::reference {

// reference_gemm.cpp
void gemm(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_attention.cpp. Entries of scores and probabilities that the mask hides are 0 and
// unread.
void attention_scores(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void softmax(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void attention_context(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void cache_append(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_norms.cpp
void rms_norm(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void layer_norm(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void row_mean(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void row_stats_partial(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void row_stats_finish(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void layer_norm_deferred(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_pointwise.cpp
void rope(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void swiglu(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void gelu(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void silu(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void square(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void rsqrt(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void copy(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void add_scalar(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void add(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void multiply(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void negate_half(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void concat_halves(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void embedding(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_backward_attention.cpp. Masked entries of dP and dS are 0.
void attention_backward_dot(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void attention_d_probs(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void softmax_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void softmax_backward_delta(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void softmax_recompute(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void attention_d_q(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void attention_d_k(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void attention_d_v(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void head_sum(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_backward_norms.cpp. Statistics are [M, 1], r, or [M, 2], r and r·mean.
void norm_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void norm_weight_grad(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void norm_apply(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void row_dot_partial(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void row_dot_finish(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void norm_backward_deferred(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void col_stats_partial(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void col_stats_finish(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void column_sum(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_backward_pointwise.cpp
void rope_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void swiglu_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void gelu_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void silu_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void concat(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_loss.cpp
void cross_entropy(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void cross_entropy_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void cross_entropy_partial(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void cross_entropy_finish(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void embedding_backward(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
// reference_backward_pointwise.cpp
void cube(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void scale(const Graph&, const Op&, const TensorValues& in, TensorValues& out);
void expand_rows(const Graph&, const Op&, const TensorValues& in, TensorValues& out);

}  // namespace fuseline::reference
