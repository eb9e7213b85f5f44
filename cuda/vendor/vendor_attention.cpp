#include "cuda/vendor/vendor_attention.h"

namespace fuseline::cuda {

namespace {

bool mainloop_fits(const Graph& graph, const AttentionMainloop& m) {
  const AttentionShape& s = m.shape;
  const auto type = [&](const Operand& o) { return graph.tensor(o.tensor).dtype; };
  const auto whole = [&](const Operand& o, std::int64_t rows) {
    return o.rows == rows && graph.tensor(o.tensor).rows == rows;
  };
  const Dtype in = type(m.q);
  if (m.gradient || m.q_value >= 0 || m.k_value >= 0 || m.v_value >= 0) return false;
  if (in == Dtype::fp32 || type(m.k) != in || type(m.v) != in) return false;
  if (s.softcap > 0 || m.bias || s.window != 0 || s.head_width > 128 || s.head_width % 8 != 0)
    return false;
  if (s.causal && s.q_tokens != s.kv_tokens && s.q_tokens != 1) return false;
  return whole(m.q, s.batch * s.q_tokens) && whole(m.k, s.batch * s.kv_tokens) &&
         whole(m.v, s.batch * s.kv_tokens);
}

}  // namespace

std::optional<VendorAttention> vendor_attention(const Graph& graph, const Program& program) {
  const auto* m = std::get_if<AttentionMainloop>(&program.mainloop);
  if (m == nullptr || !program.prologue.empty() || !mainloop_fits(graph, *m)) return std::nullopt;
  VendorAttention form;
  form.masked = m->shape.causal && m->shape.q_tokens > 1;
  bool stored = false;
  for (const Primitive& primitive : program.body) {
    if (const auto* tile = primitive.as<StoreTile>()) {
      if (tile->in != 0 || tile->accumulate || stored) return std::nullopt;
      if (graph.tensor(tile->to.tensor).dtype != graph.tensor(m->q.tensor).dtype)
        return std::nullopt;
      form.out = tile->to;
      stored = true;
    } else if (const auto* vector = primitive.as<StoreVector>()) {
      if (vector->in != m->log_sum_exp || form.log_sum_exp) return std::nullopt;
      if (graph.tensor(vector->to.tensor).dtype != Dtype::fp32) return std::nullopt;
      form.log_sum_exp = vector->to;
    } else {
      return std::nullopt;
    }
  }
  if (!stored) return std::nullopt;
  return form;
}

}  // namespace fuseline::cuda
