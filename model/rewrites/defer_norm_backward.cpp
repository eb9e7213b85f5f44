#include "model/rewrites/defer_norm_backward.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_defer_norm_backward {
namespace {

bool is_norm_backward(const Op& op) {
  return op.kind == operators::rms_norm_backward || op.kind == operators::layer_norm_backward;
}

// One norm's gradient and what is around it.
struct Site {
  const Op* norm = nullptr;           // norm_backward
  const Op* dgrad = nullptr;          // p = dy W
  const Op* sum = nullptr;            // dh = dx + dres; null: no residual stream goes past the norm
  Operand y;                          // of the forward pass
  std::optional<Operand> shift;       // y's part that does not depend on the normalised row
  std::optional<Operand> mean_shift;  // γW of LayerNorm
};

const Op* only_reader(const Graph& graph, TensorId id, OpKind kind) {
  const std::vector<OpId> readers = graph.consumers(id);
  if (readers.size() != 1 || graph.op(readers[0]).kind != kind) return nullptr;
  return &graph.op(readers[0]);
}

// Follows the forward GEMM's result through its scale and bias to y.
bool follow(const Graph& graph, const Op& gemm, Site& site) {
  site.y = gemm.writes[0];
  if (const Op* norm = only_reader(graph, site.y.tensor, operators::layer_norm_deferred)) {
    site.mean_shift = norm->reads[2];
    site.shift = norm->reads[3];
    site.y = norm->writes[0];
    return true;
  }
  const Op* scale = only_reader(graph, site.y.tensor, operators::row_scale);
  if (scale == nullptr) return false;
  site.y = scale->writes[0];
  if (const Op* bias = only_reader(graph, site.y.tensor, operators::bias_add)) {
    site.shift = bias->reads[1];
    site.y = bias->writes[0];
  }
  return true;
}

std::optional<Site> site_of(const Graph& graph, const Op& norm) {
  if (!is_norm_backward(norm)) return std::nullopt;
  Site site;
  site.norm = &norm;
  const std::vector<OpId> makers = graph.producers(norm.reads[0].tensor);
  if (makers.size() != 1 || !is_gemm(graph.op(makers[0]))) return std::nullopt;
  site.dgrad = &graph.op(makers[0]);
  site.sum = only_reader(graph, norm.writes[0].tensor, operators::grad_add);
  const bool leaves = graph.tensor(norm.writes[0].tensor).role == Role::output;
  if (site.sum == nullptr && !leaves) return std::nullopt;
  for (const OpId id : graph.consumers(site.dgrad->reads[1].tensor)) {
    const Op& op = graph.op(id);
    const bool product = is_gemm(op) && op.pass == Pass::forward &&
                         op.reads[1].tensor == site.dgrad->reads[1].tensor && op.reads[0].rows > 1;
    if (product && follow(graph, op, site)) return site;
  }
  return std::nullopt;
}

std::vector<Site> sites(const Graph& graph) {
  std::vector<Site> found;
  for (const Op& op : graph.ops())
    if (auto site = site_of(graph, op)) found.push_back(*site);
  return found;
}

// Columns of y and dy whose product is summed.
struct Part {
  Operand dy, y;
  const Op* rotation = nullptr;  // rope_backward that makes dy, when y is saved rotated
  Operand rotated;               // what it read: the gradient of the rotated values
};

Operand columns(const Operand& of, const Operand& like) {
  Operand o = of;
  o.col_begin += like.col_begin;
  o.cols = like.cols;
  return o;
}

// The rotated slices of y, then the columns between and behind them.
std::vector<Part> parts_of(const Graph& graph, const Site& site) {
  const Operand dy = site.dgrad->reads[0];
  std::vector<Part> parts;
  for (const OpId id : graph.consumers(site.y.tensor)) {
    const Op& rope = graph.op(id);
    if (rope.kind != operators::rope) continue;
    for (const OpId back : graph.producers(dy.tensor)) {
      const Op& op = graph.op(back);
      if (op.kind != operators::rope_backward || op.writes[0].col_begin != rope.reads[0].col_begin)
        continue;
      parts.push_back({op.writes[0], rope.writes[0], &op, op.reads[0]});
    }
  }
  std::ranges::sort(parts, {}, [](const Part& p) { return p.dy.col_begin; });
  std::vector<Part> plain;
  std::int64_t reached = 0;
  const auto fill = [&](std::int64_t until) {
    if (until <= reached) return;
    Operand gap = dy;
    gap.col_begin = reached;
    gap.cols = until - reached;
    plain.push_back({gap, columns(site.y, gap), nullptr, {}});
  };
  for (const Part& p : parts) {
    fill(p.dy.col_begin);
    reached = p.dy.col_begin + p.dy.cols;
  }
  fill(dy.cols);
  parts.insert(parts.end(), plain.begin(), plain.end());
  return parts;
}

class Deferral {
 public:
  explicit Deferral(const Graph& from) : from_(from), sites_(sites(from)) {}

  bool replace(const Op& op, Graph& to) {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const Site& site = sites_[i];
      if (op.name == site.dgrad->name) {
        row_sums(site, to);
        return false;
      }
      const Op& last = site.sum != nullptr ? *site.sum : *site.norm;
      if (op.name == last.name) {
        finish(site, to);
        return true;
      }
      if (op.name == site.norm->name) return true;
    }
    return false;
  }

 private:
  static std::string norm_name(const Site& site) { return site.norm->name.substr(2); }  // "d_"

  void row_sums(const Site& site, Graph& to) {
    const std::string name = norm_name(site);
    const std::vector<Part> parts = parts_of(from_, site);
    const std::int64_t sums = site.mean_shift ? 2 : 1;
    std::int64_t width = 0;
    for (const Part& p : parts) width += sums * ceil_div(p.dy.cols, partial_tile);
    const PartialTile tile{.cols = partial_tile};
    const RowStatistics statistics{.norm_width = site.norm->reads[1].cols};
    const std::int64_t rows = site.y.rows;
    const Operand partials =
        to.whole(add_activation(to, "dots_" + name, sums == 2 ? "[M, 2⌈N/128⌉]" : "[M, ⌈N/128⌉]",
                                Dtype::fp32, rows, width));
    Operand at = partials;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      at.cols = sums * ceil_div(parts[i].dy.cols, partial_tile);
      const std::string suffix = parts.size() > 1 ? "_" + std::to_string(i + 1) : "";
      to.add_op({"dot_" + name + suffix,
                 operators::row_dot_partial,
                 factors(site, parts[i], to),
                 {at},
                 tile,
                 site.dgrad->site,
                 Pass::backward});
      at.col_begin += at.cols;
    }
    const Operand c = to.whole(
        add_activation(to, "c_" + name, sums == 2 ? "[M, 2]" : "[M, 1]", Dtype::fp32, rows, sums));
    to.add_op({"finish_dot_" + name,
               operators::row_dot_finish,
               {partials},
               {c},
               statistics,
               site.norm->site,
               Pass::backward});
    row_sums_.emplace_back(site.norm->name, c);
  }

  std::vector<Operand> factors(const Site& site, const Part& part, Graph& to) {
    if (part.rotation == nullptr || !site.shift) {
      std::vector<Operand> reads{part.rotation != nullptr ? part.rotated : part.dy, part.y};
      if (site.shift) reads.push_back(columns(*site.shift, part.dy));
      if (site.mean_shift) reads.push_back(columns(*site.mean_shift, part.dy));
      return reads;
    }
    // y again from its rotated form: the bias was added before the rotation.
    Op back = *part.rotation;
    const Tensor like = to.tensor(site.y.tensor);
    if (!again_)
      again_ = add_activation(to, "re_" + like.name, like.symbol, like.dtype, like.rows, like.cols);
    back.name = "re_" + part.rotation->name.substr(2);
    back.reads[0] = part.y;
    back.writes = {columns(to.whole(*again_), part.dy)};
    const Operand y = back.writes[0];
    to.add_op(std::move(back));
    std::vector<Operand> reads{part.dy, y, columns(*site.shift, part.dy)};
    if (site.mean_shift) reads.push_back(columns(*site.mean_shift, part.dy));
    return reads;
  }

  void finish(const Site& site, Graph& to) {
    const auto c =
        std::ranges::find(row_sums_, site.norm->name, &std::pair<std::string, Operand>::first);
    FUSELINE_ASSERT(c != row_sums_.end(), site.norm->name);
    const Op& norm = *site.norm;
    std::vector<Operand> reads{norm.reads[0], norm.reads[1], norm.reads[2], norm.reads[3],
                               c->second};
    if (site.sum != nullptr) {
      const bool first = site.sum->reads[0].tensor == norm.writes[0].tensor;
      reads.push_back(site.sum->reads[first ? 1 : 0]);
    }
    to.add_op({norm.name, operators::norm_backward_deferred, std::move(reads),
               site.sum != nullptr ? site.sum->writes : norm.writes, norm.attributes, norm.site,
               Pass::backward});
  }

  const Graph& from_;
  std::vector<Site> sites_;
  std::vector<std::pair<std::string, Operand>> row_sums_;  // by norm
  std::optional<TensorId> again_;
};

void apply(Block& block) {
  const Graph from = block.graph;
  Deferral deferral(from);
  block.graph = without_unused_tensors(
      replace_ops(from, [&](const Op& op, Graph& to) { return deferral.replace(op, to); }));
}

}  // namespace
}  // namespace in_defer_norm_backward

Rewrite defer_norm_backward() {
  return {"defer_norm_backward",
          "a norm's gradient behind the GEMM, from row sums of y·dy known before it",
          [](const Graph& graph) { return !in_defer_norm_backward::sites(graph).empty(); },
          in_defer_norm_backward::apply};
}

}  // namespace fuseline
