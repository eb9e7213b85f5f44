#include "model/rewrites/attention_backward.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_attention_backward {
namespace {

// Only what one kernel computes: textbook attention stores its products as they are.
bool is_fused(const Graph& graph) {
  return std::ranges::any_of(graph.ops(),
                             [](const Op& op) { return op.kind == operators::softmax_recompute; });
}

bool is_dq(const Op& op) { return op.kind == operators::attention_d_q; }

bool is_grouped(const Op& op) {
  return (op.kind == operators::attention_d_k || op.kind == operators::attention_d_v) &&
         op.attributes.as<AttentionShape>().heads != op.attributes.as<AttentionShape>().kv_heads;
}

// What tells a block's attentions apart: "" of "d_q", "_cross" of "d_q_cross".
std::string which_attention(const Op& op) { return op.name.substr(std::string("d_q").size()); }

bool accumulate(const Op& op, Graph& to) {
  if (!is_dq(op)) return false;
  const Operand& w = op.writes[0];
  Op first = op;
  const std::string which = which_attention(op);
  first.writes = {
      to.whole(add_activation(to, "dq_sum" + which, "[M, H·d]", Dtype::fp32, w.rows, w.cols))};
  const std::vector<Operand> sum = first.writes;
  to.add_op(std::move(first));
  to.add_op({"convert_dq" + which, operators::cast, sum, op.writes,
             Conversion{.of_attention = true}, op.site, op.pass});
  return true;
}

// Both sums come behind the last of the kernel's results, as the library launches them.
void sum_both(Block& block) {
  const Graph from = block.graph;
  std::map<std::string, std::vector<Op>> sums;  // dK's and dV's, of each attention
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    if (!is_grouped(op)) return false;
    const AttentionShape& a = op.attributes.as<AttentionShape>();
    const std::string which = which_attention(op);
    const bool keys = op.kind == operators::attention_d_k;
    const std::string name = (keys ? "dk" : "dv") + which;
    Op each = op;
    AttentionShape each_head = a;
    each_head.kv_heads = a.heads;
    each.attributes = each_head;
    each.writes = {to.whole(add_activation(to, name + "_heads", "[M, H·d]",
                                           to.tensor(op.writes[0].tensor).dtype, op.writes[0].rows,
                                           a.heads * (keys ? a.head_width : a.v_width())))};
    std::vector<Op>& both = sums[which];
    both.push_back(
        {"sum_" + name, operators::head_sum, each.writes, op.writes, a, op.site, op.pass});
    to.add_op(std::move(each));
    if (both.size() == 2)
      for (Op& sum : both) to.add_op(std::move(sum));
    return true;
  });
}

}  // namespace
}  // namespace in_attention_backward

Rewrite accumulate_dq() {
  return {"accumulate_dq", "dQ is summed in fp32 and converted by a kernel of its own",
          [](const Graph& graph) {
            return in_attention_backward::is_fused(graph) &&
                   std::ranges::any_of(graph.ops(), in_attention_backward::is_dq);
          },
          [](Block& block) {
            block.graph = replace_ops(block.graph, in_attention_backward::accumulate);
          }};
}

Rewrite sum_grouped_heads() {
  return {"sum_grouped_heads", "dK and dV are made for every query head and summed afterwards",
          [](const Graph& graph) {
            return in_attention_backward::is_fused(graph) &&
                   std::ranges::any_of(graph.ops(), in_attention_backward::is_grouped);
          },
          in_attention_backward::sum_both};
}

}  // namespace fuseline
