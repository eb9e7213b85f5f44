#include "model/rewrites/chain_products.h"

#include <algorithm>
#include <set>
#include <vector>

#include "model/chain.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_chain_products {
namespace {

// The operators from another product to this one's first operand, that product included; empty:
// something else makes it, or more than this product reads it.
std::vector<OpId> way_to(const Graph& graph, OpId product) {
  std::vector<OpId> way, open = graph.producers(graph.op(product).reads[0].tensor);
  bool begins = false;
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Op& op = graph.op(open[i]);
    if (std::find(way.begin(), way.end(), open[i]) != way.end()) continue;
    way.push_back(open[i]);
    if (is_gemm(op)) {
      begins = true;
      continue;
    }
    const bool local =
        op.kind->locality == Locality::tile_local || op.kind->locality == Locality::pair_local;
    if (!local) continue;  // statistics of rows come from memory
    for (const Operand& r : op.reads)
      for (const OpId maker : graph.producers(r.tensor)) open.push_back(maker);
  }
  return begins ? way : std::vector<OpId>{};
}

bool follows_a_product(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  if (op.kind != operators::gemm || op.pass != Pass::forward ||
      op.attributes.as<GemmLayout>().chained)
    return false;
  std::vector<OpId> both;
  for (const OpId made : way_to(graph, id)) {
    const Op& maker = graph.op(made);
    if (is_gemm(maker) || maker.kind->locality == Locality::tile_local ||
        maker.kind->locality == Locality::pair_local)
      both.push_back(made);
  }
  const auto products =
      std::ranges::count_if(both, [&](OpId made) { return is_gemm(graph.op(made)); });
  if (products != 1) return false;
  std::vector<OpId> ordered;
  for (const OpId made : topological_order(graph))
    if (std::find(both.begin(), both.end(), made) != both.end()) ordered.push_back(made);
  return why_no_chain(graph, {ordered, {id}}).empty();
}

bool applies(const Graph& graph) {
  for (std::size_t i = 0; i < graph.ops().size(); ++i)
    if (follows_a_product(graph, OpId{static_cast<std::int32_t>(i)})) return true;
  return false;
}

void apply(Block& block) {
  const Graph from = block.graph;
  std::set<std::string> names;
  for (std::size_t i = 0; i < from.ops().size(); ++i) {
    const OpId id{static_cast<std::int32_t>(i)};
    if (follows_a_product(from, id)) names.insert(from.op(id).name);
  }
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    if (!names.contains(op.name)) return false;
    Op again = op;
    GemmLayout layout = op.attributes.as<GemmLayout>();
    layout.chained = true;
    again.attributes = layout;
    to.add_op(std::move(again));
    return true;
  });
}

}  // namespace
}  // namespace in_chain_products

Rewrite chain_products() {
  return {"chain_products", "two products may be one kernel, with what lies between them on chip",
          in_chain_products::applies, in_chain_products::apply};
}

}  // namespace fuseline
