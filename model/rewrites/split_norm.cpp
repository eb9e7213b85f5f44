#include "model/rewrites/split_norm.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_split_norm {
namespace {

// Legal because the scale is constant along the contraction: every reader must be a GEMM that
// contracts over the norm's columns.
bool can_split(const Graph& graph, const Op& op) {
  if (!is_norm(op) || graph.tensor(op.writes[0].tensor).role != Role::activation) return false;
  const std::vector<OpId> readers = graph.consumers(op.writes[0].tensor);
  return !readers.empty() && std::ranges::all_of(readers, [&](OpId id) {
    const Op& reader = graph.op(id);
    return is_gemm(reader) && !is_ragged(reader) && reader.reads[0] == op.writes[0];
  });
}

bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), [&](const Op& op) { return can_split(graph, op); });
}

// W' = W diag(γ), made once.
Operand folded_weight(Block& block, Graph& to, const Op& gemm, const Op& norm) {
  Tensor weight = to.tensor(gemm.reads[1].tensor);
  const Operand w = prepared(block, weight);
  const Operand gamma = prepared(block, to.tensor(norm.reads[1].tensor));
  weight.name += "_folded";
  const Operand folded = prepared(block, weight);
  block.preparation.graph.add_op({weight.name, operators::mul_cols, {w, gamma}, {folded}, {}, ""});
  return to.whole(to.add_tensor(weight));
}

// Codes cannot take γ in: their scales serve many columns.
bool weight_is_codes(const Op& op) { return is_gemm(op) && gemm_shape(op).weight.quantised(); }

// The row vector v W^T for a vector v of length D, plus a bias when there is one.
Operand folded_vector(Block& block, Graph& to, const Op& gemm, const Operand& v, const Op* bias,
                      const std::string& prefix) {
  Graph& prep = block.preparation.graph;
  const Tensor& weight = to.tensor(gemm.reads[1].tensor);
  const Operand w = prepared(block, weight);
  const Operand vector = prepared(block, to.tensor(v.tensor));
  const Tensor result{.name = prefix + "_" + gemm.name,
                      .symbol = "[1, N]",
                      .role = Role::weight,
                      .dtype = Dtype::fp32,
                      .rows = 1,
                      .cols = weight.rows};
  const Operand made = prepared(block, result);
  std::vector<Operand> reads = {vector, w};
  for (std::size_t i = 2; i < gemm.reads.size(); ++i)
    reads.push_back(prepared(block, to.tensor(gemm.reads[i].tensor)));
  if (bias == nullptr) {
    prep.add_op({result.name, operators::gemm, reads, {made}, gemm.attributes, ""});
  } else {
    Tensor product = result;
    product.name += "_product";
    product.role = Role::activation;
    const Operand raw = prepared(block, product);
    prep.add_op({product.name, operators::gemm, reads, {raw}, gemm.attributes, ""});
    const Operand b = prepared(block, to.tensor(bias->reads[1].tensor));
    prep.add_op({result.name, operators::bias_add, {raw, b}, {made}, {}, ""});
  }
  return to.whole(to.add_tensor(result));
}

class Splitter {
 public:
  // keep_weight: γ is applied to the row before the GEMM instead of being folded into its matrix.
  Splitter(Block& block, bool keep_weight)
      : block_(block), from_(block.graph), keep_weight_(keep_weight) {
    for (const Op& op : from_.ops()) {
      if (!can_split(from_, op)) continue;
      norms_[op.writes[0].tensor] = &op;
      if (op.kind != operators::layer_norm) continue;
      for (const OpId id : from_.consumers(op.writes[0].tensor))
        if (const Op* bias = only_bias(from_.op(id))) merged_.insert(bias->name);
    }
  }

  bool replace(const Op& op, Graph& to) {
    if (merged_.contains(op.name)) return true;
    if (is_norm(op) && norms_.contains(op.writes[0].tensor)) {
      statistics(op, to);
      return true;
    }
    if (!is_gemm(op) || !norms_.contains(op.reads[0].tensor)) return false;
    deferred(op, *norms_.at(op.reads[0].tensor), to);
    return true;
  }

 private:
  // The bias_add that alone reads the GEMM's result.
  const Op* only_bias(const Op& gemm) const {
    const std::vector<OpId> readers = from_.consumers(gemm.writes[0].tensor);
    if (readers.size() != 1 || from_.op(readers[0]).kind != operators::bias_add) return nullptr;
    return &from_.op(readers[0]);
  }

  void statistics(const Op& norm, Graph& to) {
    const bool two = norm.kind == operators::layer_norm;
    const Operand x = norm.reads[0];
    const std::int64_t tiles = ceil_div(x.cols, partial_tile);
    const Operand partials =
        to.whole(add_activation(to, "s_" + norm.name, two ? "[M, 2⌈D/128⌉]" : "[M, ⌈D/128⌉]",
                                Dtype::fp32, x.rows, two ? 2 * tiles : tiles));
    to.add_op({"stats_" + norm.name,
               operators::row_stats_partial,
               {x},
               {partials},
               PartialTile{.cols = partial_tile},
               norm.site});
    const Operand r = norm.writes.size() > 1
                          ? norm.writes[1]  // the backward pass reads them
                          : to.whole(add_activation(to, "r_" + norm.name, two ? "[M, 2]" : "[M, 1]",
                                                    Dtype::fp32, x.rows, two ? 2 : 1));
    to.add_op({"finish_" + norm.name,
               operators::row_stats_finish,
               {partials},
               {r},
               RowStatistics{.norm_width = x.cols, .eps = norm.attributes.as<NormEps>().eps},
               norm.site});
    stats_[norm.writes[0].tensor] = r;
    if (!keeps_weight(norm)) return;
    // a = x∘γ takes the place of the norm's result.
    to.add_op({"weight_" + norm.name,
               operators::mul_cols,
               {x, norm.reads[1]},
               {norm.writes[0]},
               {},
               norm.site});
  }

  // Whether γ is applied to the rows before their products.
  [[nodiscard]] bool keeps_weight(const Op& norm) const {
    return keep_weight_ ||
           std::ranges::any_of(from_.consumers(norm.writes[0].tensor),
                               [&](OpId id) { return weight_is_codes(from_.op(id)); });
  }

  // v W^T (+ bias) for a row vector v of the block, made in every step because the weights change.
  Operand row_vector(Graph& to, const Op& gemm, const Operand& v, const Op* bias,
                     const std::string& prefix) {
    const std::string name = prefix + "_" + gemm.name;
    const Operand result =
        to.whole(add_activation(to, name, "[1, N]", Dtype::fp32, 1, gemm.writes[0].cols));
    std::vector<Operand> reads = {gemm.reads[1], v};
    if (bias != nullptr) reads.push_back(bias->reads[1]);
    to.add_op({name, operators::vector_product, reads, {result}, {}, gemm.site});
    return result;
  }

  void deferred(const Op& gemm, const Op& norm, Graph& to) {
    const Operand r = stats_.at(gemm.reads[0].tensor);
    Operand result = gemm.writes[0];
    const Op* bias = norm.kind == operators::layer_norm ? only_bias(gemm) : nullptr;
    if (bias != nullptr) result = bias->writes[0];
    const Tensor like = to.tensor(result.tensor);
    const Operand raw = to.whole(
        add_activation(to, like.name + "_raw", like.symbol, like.dtype, like.rows, like.cols));
    if (keeps_weight(norm)) {
      to.add_op({gemm.name, operators::gemm, gemm.reads, {raw}, gemm.attributes, gemm.site});
    } else {
      const Operand weight = folded_weight(block_, to, gemm, norm);
      to.add_op({gemm.name, operators::gemm, {norm.reads[0], weight}, {raw}, {}, gemm.site});
    }
    if (norm.kind == operators::rms_norm) {
      to.add_op({gemm.name + "_scale", operators::row_scale, {raw, r}, {result}, {}, gemm.site});
      return;
    }
    const auto vector = [&](const Operand& v, const Op* plus, const std::string& prefix) {
      return keep_weight_ ? row_vector(to, gemm, v, plus, prefix)
                          : folded_vector(block_, to, gemm, v, plus, prefix);
    };
    const Operand wg = vector(norm.reads[1], nullptr, "gamma_w");
    const Operand wb = vector(norm.reads[2], bias, "beta_w");
    to.add_op({gemm.name + "_norm",
               operators::layer_norm_deferred,
               {raw, r, wg, wb},
               {result},
               {},
               gemm.site});
  }

  Block& block_;
  const Graph from_;
  const bool keep_weight_;
  std::map<TensorId, const Op*> norms_;  // by the tensor they write
  std::map<TensorId, Operand> stats_;
  std::set<std::string> merged_;  // bias operators that go into βW
};

void split(Block& block, bool keep_weight) {
  FUSELINE_ASSERT(applies(block.graph), "no norm between GEMMs");
  Splitter splitter(block, keep_weight);
  const Graph from = block.graph;
  block.graph = without_unused_tensors(
      replace_ops(from, [&](const Op& op, Graph& to) { return splitter.replace(op, to); }));
}

}  // namespace
}  // namespace in_split_norm

Rewrite split_norm() {
  return {"split_norm",
          "a norm becomes partial statistics, a finisher and a scale behind the next GEMM",
          in_split_norm::applies, [](Block& block) { in_split_norm::split(block, false); }};
}

Rewrite split_norm_keeping_weight() {
  return {"split_norm_keeping_weight", "the same, and the norm's weight is applied before the GEMM",
          in_split_norm::applies, [](Block& block) { in_split_norm::split(block, true); }};
}

}  // namespace fuseline
