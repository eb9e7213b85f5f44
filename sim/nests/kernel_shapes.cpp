#include "sim/nests/kernel_shapes.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "model/operators/operator_table.h"
#include "sim/memory/traffic.h"

namespace fuseline {

namespace {

double width_of(const Graph& graph, const Operand& o) {
  return size_of(graph.tensor(o.tensor).dtype).as_double();
}

Bytes left_of(Bytes all, double taken) {
  return std::max(Bytes(), all - Bytes(static_cast<std::int64_t>(taken)));
}

const GemmMainloop* plain_product(const Kernel& kernel) {
  if (kernel.phases.size() != 1) return nullptr;
  const auto* gemm = std::get_if<GemmMainloop>(&kernel.phases.front().mainloop);
  const bool plain =
      gemm != nullptr && gemm->batch == 1 && gemm->groups.empty() && gemm->depths.empty();
  return plain ? gemm : nullptr;
}

// Whether a kernel other than the two loads the tensor, or the block gives it to somebody.
bool needed_elsewhere(const Plan& plan, TensorId tensor, const Kernel& first,
                      const Kernel& second) {
  if (plan.graph.tensor(tensor).role != Role::activation) return true;
  for (const Kernel& k : plan.kernels) {
    if (&k == &first || &k == &second) continue;
    for (const Program& p : k.phases)
      for (const Operand& o : loads(p))
        if (o.tensor == tensor) return true;
  }
  return false;
}

}  // namespace

std::optional<ProductShape> product_of(const Graph& graph, const Kernel& kernel) {
  const GemmMainloop* g = plain_product(kernel);
  if (g == nullptr) return std::nullopt;
  ProductShape s{.m = g->M,
                 .n = g->N,
                 .k = g->K,
                 .a_bytes = width_of(graph, g->a),
                 .b_bytes = width_of(graph, g->b)};
  for (const Primitive& p : kernel.phases.front().body)
    s.n_unit = std::lcm(s.n_unit, p.demands().column_group);
  const DistinctBytes all = distinct_bytes(graph, kernel);
  s.other = left_of(all.loaded + all.stored, s.a_total() + s.b_total());
  return s;
}

std::optional<ProductShape> product_of(const Graph& graph, const Op& op) {
  if (!is_gemm(op) || is_ragged(op)) return std::nullopt;
  const GemmShape g = gemm_shape(op);
  return ProductShape{.m = g.M,
                      .n = g.N,
                      .k = g.K,
                      .a_bytes = width_of(graph, op.reads[0]),
                      .b_bytes = width_of(graph, op.reads[1]),
                      .c_bytes = width_of(graph, op.writes[0])};
}

std::optional<ChainShape> attention_of(const Graph& graph, const Kernel& kernel) {
  if (kernel.phases.size() != 1) return std::nullopt;
  const auto* a = std::get_if<AttentionMainloop>(&kernel.phases.front().mainloop);
  if (a == nullptr || a->gradient) return std::nullopt;
  const AttentionShape& s = a->shape;
  const std::int64_t keys =
      s.window > 0 ? std::min(s.kv_tokens, s.q_tokens + s.window) : s.kv_tokens;
  ChainShape c{.m = s.q_tokens * (s.heads / s.kv_heads),
               .f = keys,
               .k = s.head_width,
               .n = s.v_width(),
               .count = s.batch * s.kv_heads,
               .a_bytes = width_of(graph, a->q),
               .b_bytes = width_of(graph, a->k),
               .c_bytes = width_of(graph, a->v)};
  c.share = static_cast<double>(visible_pairs(s)) / static_cast<double>(s.q_tokens * keys);
  const DistinctBytes all = distinct_bytes(graph, kernel);
  c.other = left_of(all.loaded + all.stored, c.moved_once());
  return c;
}

std::optional<ChainShape> chain_of(const Plan& plan, const Kernel& first, const Kernel& second) {
  const GemmMainloop* one = plain_product(first);
  const GemmMainloop* two = plain_product(second);
  if (one == nullptr || two == nullptr || one->M != two->M || two->K == 0) return std::nullopt;
  if (one->N % two->K != 0) return std::nullopt;
  const std::vector<Operand> stored = stores(first.phases.front());
  const auto made =
      std::ranges::find_if(stored, [&](const Operand& o) { return o.tensor == two->a.tensor; });
  if (made == stored.end() || made->cols != two->K || made->rows != two->M) return std::nullopt;
  const auto a = product_of(plan.graph, first), b = product_of(plan.graph, second);
  ChainShape c{.m = one->M,
               .f = one->N,
               .k = one->K,
               .n = two->N,
               .narrowed = one->N / two->K,
               .a_bytes = a->a_bytes,
               .b_bytes = a->b_bytes,
               .h_bytes = b->a_bytes,
               .c_bytes = b->b_bytes};
  const double between = needed_elsewhere(plan, two->a.tensor, first, second) ? 0 : b->a_total();
  c.other = left_of(a->other + b->other, between);
  return c;
}

}  // namespace fuseline
