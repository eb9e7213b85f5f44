// x wᵀ + b: linear, or mm and addmm with a weight that is turned before, or stored the other way.
#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_linear {
namespace {

struct Weight {
  std::size_t matrix = 0;
  bool stored_in_out = false;
};

// Of a view [N, K], as linear() reads it, or [K, N], as mm() does.
std::optional<Weight> whole_weight(Translator& t, std::size_t at, bool out_first) {
  const auto& view = t.view(at);
  if (!view || view->dims.size() != 2 || view->first_column != 0 || view->first_row != 0)
    return std::nullopt;
  const DraftMatrix& w = t.draft().matrices[view->matrix];
  const Dimension rows{{MatrixAxis::row, w.rows, 1}};
  const Dimension columns{{MatrixAxis::column, w.columns, 1}};
  if (w.kind != MatrixKind::weight || w.rows < 2 || w.columns < 2) return std::nullopt;
  const Dimension& out = view->dims[out_first ? 0 : 1];
  const Dimension& in = view->dims[out_first ? 1 : 0];
  if (out == rows && in == columns) return Weight{view->matrix, false};
  if (out == columns && in == rows) return Weight{view->matrix, true};
  return std::nullopt;
}

// Our weights are [out, in]; the number of a weight that is stored [in, out] is the same.
std::size_t turned(Translator& t, const Weight& weight) {
  if (!weight.stored_in_out) return weight.matrix;
  DraftMatrix w = t.draft().matrices[weight.matrix];
  std::swap(w.rows, w.columns);
  return t.draft().add(std::move(w));
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const bool linear = t.is_call(at, "aten.linear");
  const bool addmm = t.is_call(at, "aten.addmm");
  const std::size_t first = addmm ? 1 : 0;
  const auto x = t.tensor(at, first, linear ? "input" : addmm ? "mat1" : "self");
  const auto w = t.tensor(at, first + 1,
                          linear                              ? "weight"
                          : addmm || t.is_call(at, "aten.mm") ? "mat2"
                                                              : "other");
  const auto b = linear  ? t.tensor(at, 2, "bias")
                 : addmm ? t.tensor(at, 0, "self")
                         : std::optional<std::size_t>();
  if (!x || !w || !t.view(*x)) return std::nullopt;
  if (addmm &&
      (t.number(at, 3, "beta").value_or(1) != 1 || t.number(at, 4, "alpha").value_or(1) != 1))
    return std::nullopt;
  const auto weight = whole_weight(t, *w, linear);
  const TensorView& view = *t.view(*x);
  if (!weight || t.draft().matrices[view.matrix].kind == MatrixKind::weight) return std::nullopt;
  const auto range = in_order(view, t.rows_of(view));
  if (!range || view.dims.empty()) return std::nullopt;
  DraftStep step{.call = "linear", .reads = {*range}};
  if (weight->stored_in_out)
    step.remarks.emplace_back(
        "Weights that the module stores [in, out] (Conv1D) are [out, in] in the block");
  step.reads.push_back(t.draft().all_of(turned(t, *weight)));
  const std::int64_t out =
      step.reads.back().count == 0 ? 0 : t.draft().matrices[step.reads.back().matrix].rows;
  if (t.draft().matrices[step.reads.back().matrix].columns != range->count) return std::nullopt;
  if (b) {
    const auto bias = t.vector(*b);
    if (!bias || bias->count != out) return std::nullopt;
    step.reads.push_back(*bias);
  } else if (addmm) {
    return std::nullopt;
  }
  const std::size_t result = t.draft().add(DraftMatrix{.rows = t.rows_of(view), .columns = out});
  step.writes = {result};
  t.draft().add(std::move(step));
  TensorView y = same_dimensions(view, result);
  y.dims.back() = {{MatrixAxis::column, out, 1}};
  return y;
}

constexpr const char* kCalls[] = {"aten.linear", "aten.addmm", "aten.mm", "aten.matmul"};

}  // namespace
}  // namespace in_linear

constinit const ImportPattern patterns::linear{.calls = in_linear::kCalls,
                                               .match = in_linear::match};

}  // namespace fuseline
