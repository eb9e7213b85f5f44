// Attention's kernels: the fused forward and backward mainloops, and single products over heads.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "model/lower_attention.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/cache_scales.h"

namespace fuseline {

namespace {

const Op* find_kind(const Graph& graph, const std::vector<OpId>& ops, OpKind kind) {
  const auto it =
      std::find_if(ops.begin(), ops.end(), [&](OpId id) { return graph.op(id).kind == kind; });
  return it == ops.end() ? nullptr : &graph.op(*it);
}

const Op& need_kind(const Graph& graph, const std::vector<OpId>& ops, OpKind kind) {
  const Op* op = find_kind(graph, ops, kind);
  FUSELINE_ASSERT(op != nullptr, std::string("attention without ") + name_of(kind));
  return *op;
}

Program forward_program(Emitter& e, const std::vector<OpId>& ops) {
  const Graph& graph = e.graph();
  const Op& first = need_kind(graph, ops, operators::attention_scores);
  const Op& middle = need_kind(graph, ops, operators::softmax);
  const Op& last = need_kind(graph, ops, operators::attention_context);
  const auto scores = std::find_if(ops.begin(), ops.end(),
                                   [&](OpId id) { return graph.op(id).name == first.name; });
  const auto context =
      std::find_if(ops.begin(), ops.end(), [&](OpId id) { return graph.op(id).name == last.name; });
  const std::int64_t width = last.writes[0].cols;
  AttentionMainloop m{first.reads[0], first.reads[1], last.reads[1],
                      first.attributes.as<AttentionShape>()};
  m.bias = score_bias(first);
  m.k_scale = cache_scale(first);
  m.v_scale = cache_scale(last);
  e.set_mainloop(m, width);
  e.in_prologue(true);
  for (auto it = ops.begin(); it != scores; ++it) graph.op(*it).kind->lower(e, graph.op(*it));
  if (e.made_here(m.q)) m.q_value = e.tile(m.q);
  if (e.made_here(m.k)) m.k_value = e.tile(m.k);
  if (e.made_here(m.v)) m.v_value = e.tile(m.v);
  e.in_prologue(false);
  if (middle.writes.size() > 1) m.log_sum_exp = e.fresh("lse");
  e.set_mainloop(m, width);
  e.produce_result(last.writes[0]);
  if (middle.writes.size() > 1) e.produce(middle.writes[1], m.log_sum_exp, true);
  for (auto it = std::next(context); it != ops.end(); ++it)
    graph.op(*it).kind->lower(e, graph.op(*it));
  return e.finish();
}

// Scores and probabilities again from the log-sum-exp, then the three gradients.
Program backward_program(Emitter& e, const std::vector<OpId>& ops) {
  const Graph& graph = e.graph();
  const Op& scores = need_kind(graph, ops, operators::attention_scores);
  const Op& probs = need_kind(graph, ops, operators::softmax_recompute);
  const Op& d_probs = need_kind(graph, ops, operators::attention_d_probs);
  const Op& d_scores = need_kind(graph, ops, operators::softmax_backward_delta);
  const Op& d_q = need_kind(graph, ops, operators::attention_d_q);
  const Op& d_k = need_kind(graph, ops, operators::attention_d_k);
  const Op& d_v = need_kind(graph, ops, operators::attention_d_v);
  const auto& shape = scores.attributes.as<AttentionShape>();
  const std::size_t steps = shape.softcap > 0 ? 8 : 7;  // attention_d_capped
  FUSELINE_ASSERT(ops.size() == steps, "attention's gradient takes no other operators");
  AttentionMainloop m{scores.reads[0], scores.reads[1], d_probs.reads[1],
                      scores.attributes.as<AttentionShape>()};
  m.bias = score_bias(scores);
  AttentionGradient g{d_probs.reads[0], probs.reads[1], d_scores.reads[2]};
  g.per_query_head = d_k.writes[0].cols > m.k.cols;
  g.dk = e.fresh("dk");
  g.dv = e.fresh("dv");
  m.gradient = g;
  e.set_mainloop(m, d_q.writes[0].cols);
  e.produce_result(d_q.writes[0], "dq");
  e.produce(d_k.writes[0], g.dk);
  e.produce(d_v.writes[0], g.dv);
  return e.finish();
}

}  // namespace

Program attention_program(Emitter& e, const std::vector<OpId>& ops) {
  const bool gradient = find_kind(e.graph(), ops, operators::attention_d_q) != nullptr;
  return gradient ? backward_program(e, ops) : forward_program(e, ops);
}

}  // namespace fuseline
