#include "model/chain.h"

#include <algorithm>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

bool is_among(const std::vector<OpId>& ops, OpId id) {
  return std::find(ops.begin(), ops.end(), id) != ops.end();
}

std::set<TensorId> written_by(const Graph& graph, const std::vector<OpId>& ops) {
  std::set<TensorId> written;
  for (const OpId id : ops)
    for (const Operand& w : graph.op(id).writes) written.insert(w.tensor);
  return written;
}

bool reads_any(const Op& op, const std::set<TensorId>& tensors) {
  return std::ranges::any_of(op.reads,
                             [&](const Operand& r) { return tensors.contains(r.tensor); });
}

bool may_be_chained(const Op& op) {
  const auto* layout = op.attributes.get<GemmLayout>();
  return layout != nullptr && layout->chained;
}

const Op& product_of(const Graph& graph, const std::vector<OpId>& ops) {
  return graph.op(*std::ranges::find_if(ops, [&](OpId id) { return is_gemm(graph.op(id)); }));
}

// Rows of each weight lie behind each other, and numbers of 16 bits are multiplied.
std::string why_not_plain(const Graph& graph, const Op& op) {
  if (op.kind != operators::gemm) return op.name + " is not a plain product of one matrix";
  const GemmShape s = gemm_shape(op);
  if (s.a_is_km || s.b_is_kn) return op.name + " reads a matrix that is stored the other way round";
  if (s.weight.quantised() || s.activation.quantised())
    return op.name + " reads codes, which a chain of products does not dequantise";
  for (std::size_t i = 0; i < 2; ++i)
    if (size_of(graph.tensor(op.reads[i].tensor).dtype).bits() != 16)
      return op.name + " multiplies numbers that are not of 16 bits";
  if (s.N % 4 != 0)
    return fmt::format("{} has {} columns, which are no multiple of 4", op.name, s.N);
  if (op.reads[1].col_begin != 0 || op.reads[1].cols != graph.tensor(op.reads[1].tensor).cols)
    return op.name + " reads some columns of its weight only";
  if (s.K % chained_piece != 0)
    return fmt::format("{} sums {} columns, which are no multiple of {}", op.name, s.K,
                       chained_piece);
  return "";
}

// Each thread block makes other columns of h.
std::string why_not_of_columns(const Op& op) {
  if (op.kind->partial != Sums::none)
    return op.name + " sums columns that several thread blocks of the chain make";
  if (needs_whole_heads(op))
    return op.name + " needs whole heads, while a thread block of the chain has some columns";
  return "";
}

}  // namespace

std::optional<Chain> parts_of_chain(const Graph& graph, const std::vector<OpId>& ops) {
  std::vector<OpId> products;
  for (const OpId id : ops)
    if (is_contraction(graph.op(id))) products.push_back(id);
  if (products.size() != 2 || !is_gemm(graph.op(products[0])) || !is_gemm(graph.op(products[1])) ||
      !may_be_chained(graph.op(products[1])))
    return std::nullopt;
  // What depends on a product, the product included.
  const auto behind = [&](OpId product) {
    std::vector<OpId> found{product};
    std::set<TensorId> made = written_by(graph, found);
    for (const OpId id : ops) {
      if (id == product || !reads_any(graph.op(id), made)) continue;
      found.push_back(id);
      for (const Operand& w : graph.op(id).writes) made.insert(w.tensor);
    }
    return found;
  };
  const std::vector<OpId> of_first = behind(products[0]);
  if (!is_among(of_first, products[1])) return std::nullopt;
  std::vector<OpId> second = behind(products[1]);
  // What only the second part reads, a norm's statistics say, is computed there.
  for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
    if (is_among(of_first, *it) || is_among(second, *it)) continue;
    const std::set<TensorId> made = written_by(graph, {*it});
    const bool elsewhere = std::ranges::any_of(
        ops, [&](OpId id) { return reads_any(graph.op(id), made) && !is_among(second, id); });
    if (!elsewhere) second.push_back(*it);
  }
  Chain chain;
  for (const OpId id : ops) (is_among(second, id) ? chain.second : chain.first).push_back(id);
  return chain;
}

std::string why_no_chain(const Graph& graph, const Chain& chain, const Target& target) {
  const Op& first = product_of(graph, chain.first);
  const Op& second = product_of(graph, chain.second);
  for (const Op* op : {&first, &second})
    if (std::string why = why_not_plain(graph, *op); !why.empty()) return why;
  const GemmShape sizes = gemm_shape(first);
  if (sizes.M > most_chained_rows)
    return fmt::format(
        "{} has {} rows: parts of the result of {} go through L2 for each of them, "
        "and a chain takes {} at most",
        first.name, sizes.M, second.name, most_chained_rows);
  const Operand& h = second.reads[0];
  const Tensor& between = graph.tensor(h.tensor);
  if (h.col_begin != 0 || h.cols != between.cols || h.rows != between.rows)
    return second.name + " reads a part of " + between.name;
  if (between.role != Role::activation)
    return between.name + " is wanted behind the block, and a chain does not store it";
  for (const OpId id : graph.consumers(h.tensor))
    if (graph.op(id).name != second.name)
      return graph.op(id).name + " reads " + between.name + " too, and a chain does not store it";
  for (const OpId id : chain.first)
    if (std::string why = why_not_of_columns(graph.op(id)); !why.empty()) return why;
  const std::set<TensorId> made = written_by(graph, chain.first);
  for (const OpId id : chain.second)
    if (graph.op(id).name != second.name && reads_any(graph.op(id), made))
      return graph.op(id).name + " reads what thread blocks of " + first.name + " make";
  // A thread block holds all of a. The rest is for its columns of h and the sums of its warps.
  constexpr std::int64_t kRest = 64 * 1024;
  const std::int64_t bytes = most_chained_rows * sizes.K * 2;
  if (bytes + kRest > target.shared_bytes_per_block)
    return fmt::format(
        "{} rows of {} columns take {} KiB of a thread block's {}, and a chain has "
        "{} for them",
        most_chained_rows, sizes.K, bytes / 1024, target.shared_bytes_per_block / 1024,
        (target.shared_bytes_per_block - kRest) / 1024);
  return "";
}

std::optional<Operand> handed_over(const Kernel& kernel) {
  if (kernel.implementation != Implementation::chained_products || kernel.phases.size() != 2)
    return std::nullopt;
  const auto* second = std::get_if<GemmMainloop>(&kernel.phases[1].mainloop);
  if (second == nullptr) return std::nullopt;
  return second->a;
}

std::string why_not_handed_over(const Graph& graph, const Kernel& kernel) {
  if (kernel.phases.size() != 2)
    return fmt::format("a chain of two products has {} programs", kernel.phases.size());
  for (const Program& p : kernel.phases) {
    const auto* m = std::get_if<GemmMainloop>(&p.mainloop);
    const bool plain = m != nullptr && m->batch == 1 && m->groups.empty() && m->depths.empty() &&
                       !m->a_is_km && !m->b_is_kn && !m->weight.quantised();
    if (!plain) return p.name + " is no plain product, as both of a chain are";
  }
  const auto& first = std::get<GemmMainloop>(kernel.phases[0].mainloop);
  const auto& second = std::get<GemmMainloop>(kernel.phases[1].mainloop);
  const Tensor& between = graph.tensor(second.a.tensor);
  if (first.M != second.M || first.M > most_chained_rows)
    return fmt::format("its products have {} and {} rows", first.M, second.M);
  if (second.K <= 0 || (first.N != second.K && first.N != 2 * second.K))
    return fmt::format("its first product has {} columns, of which {} are not made", first.N,
                       second.K);
  if (second.a != graph.whole(second.a.tensor)) return "it takes a part of " + between.name;
  const std::vector<Operand> stored = stores(kernel.phases[0]);
  if (std::ranges::find(stored, second.a) == stored.end())
    return kernel.phases[0].name + " does not store all of " + between.name;
  return "";
}

}  // namespace fuseline
