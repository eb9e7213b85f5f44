#include "sim/executor/reference_fast.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/operators/support/view.h"
#include "sim/executor/blas.h"
#include "sim/executor/reference_attention.h"
#include "sim/executor/reference_source.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kBlock = 256;  // rows or columns of a product that one task computes

using reference::View;

class FastReference {
 public:
  FastReference(const Graph& graph, const Inputs& inputs, const Workers& workers)
      : graph_(graph),
        inputs_(inputs),
        workers_(workers),
        values_(graph),
        attentions_(streamed_attentions(graph)) {}

  TensorValues run() {
    for (const OpId id : topological_order(graph_)) {
      const Op& op = graph_.op(id);
      const std::vector<std::string> problems = check_operands(graph_, op);
      FUSELINE_ASSERT(problems.empty(), problems[0]);
      const auto attention = std::ranges::find_if(
          attentions_, [&](const AttentionSteps& steps) { return steps.holds(op); });
      if (is_gemm(op) && !is_ragged(op)) {
        gemm(op);
      } else if (is_ragged(op) && products_of_groups(op)) {
        groups(op);
      } else if (attention != attentions_.end()) {
        step(op, *attention);
      } else {
        for (const Operand& o : op.reads) load(o.tensor);
        for (const Operand& o : op.writes)
          if (graph_.tensor(o.tensor).role == Role::cache) load(o.tensor);
        op.kind->reference(graph_, op, values_, values_);
      }
    }
    return std::move(values_);
  }

 private:
  void load(TensorId id) {
    if (values_.has(id)) return;
    const Tensor& t = graph_.tensor(id);
    const Source source(graph_, values_, inputs_, graph_.whole(id));
    source.copy(0, t.rows, 0, t.cols, values_.writable(id));
  }

  // The context is computed in its turn, all gradients when the first that reads dY is due.
  void step(const Op& op, const AttentionSteps& steps) {
    if (&op == steps.context) attend(graph_, steps, inputs_, values_, workers_);
    if ((&op == steps.d_v || &op == steps.d_probs) && begun_.insert(steps.scores).second)
      attend_backward(graph_, steps, inputs_, values_, workers_);
  }

  void gemm(const Op& op) {
    const GemmShape s = gemm_shape(op);
    const Source a(graph_, values_, inputs_, op.reads[0]);
    const Source b(graph_, values_, inputs_, op.reads[1]);
    values_.writable(op.writes[0].tensor);
    const View<double> y = reference::write(graph_, values_, op.writes[0]);
    std::vector<double> whole_a;
    if (s.a_is_km) {
      a.copy(0, s.K, 0, s.M, whole_a);
    } else {
      a.copy(0, s.M, 0, s.K, whole_a);
    }
    if (const auto scale = activation_scale(op)) {
      std::vector<double> scales;
      const Source source(graph_, values_, inputs_, *scale);
      for (std::int64_t m = 0; m < s.M; ++m) {
        source.copy(m, 1, 0, scale->cols, scales);
        dequantise(s.activation, {.scale = scales.data()}, 0, s.K, whole_a.data() + m * s.K);
      }
    }
    const BlasPanel<double> left{whole_a.data(), s.a_is_km ? s.M : s.K, s.a_is_km};
    const double operations = 2.0 * static_cast<double>(s.M * s.N) * static_cast<double>(s.K);
    parallel_for(workers_, Loop{ceil_div(s.N, kBlock), operations}, [&](std::int64_t block, int) {
      const std::int64_t n = block * kBlock;
      const std::int64_t count = std::min(kBlock, s.N - n);
      std::vector<double> panel;
      if (s.b_is_kn) {
        b.copy(0, s.K, n, count, panel);
      } else {
        b.copy(n, count, 0, s.K, panel);
      }
      for (std::int64_t j = 0; j < count && s.weight.quantised(); ++j)
        dequantise_row(op, s, n + j, panel.data() + j * s.K);
      const BlasPanel<double> right{panel.data(), s.b_is_kn ? count : s.K, s.b_is_kn};
      multiply_into(y, 0, n, left, right, s.M, count, s.K);
    });
  }

  // Rows [row, row + M) × columns [col, col + N) of y.
  static void multiply_into(const View<double>& y, std::int64_t row, std::int64_t col,
                            const BlasPanel<double>& a, const BlasPanel<double>& b, std::int64_t M,
                            std::int64_t N, std::int64_t K) {
    if (y.is_matrix()) {
      multiply(a, b, M, N, K, 0.0, y.data + row * y.stride + col, y.stride);
      return;
    }
    std::vector<double> product(static_cast<std::size_t>(M * N));
    multiply(a, b, M, N, K, 0.0, product.data(), N);
    for (std::int64_t m = 0; m < M; ++m) std::copy_n(product.data() + m * N, N, &y(row + m, col));
  }

  // A product for each group of rows, a panel of its matrix or of its result at a time. Rows of A
  // are the group's; B has the group's matrix, or where groups lie along K the same rows as A.
  void groups(const Op& op) {
    const GemmShape s = gemm_shape(op);
    const bool along_k = !s.depths.empty();
    const Source a(graph_, values_, inputs_, op.reads[0]);
    const Source b(graph_, values_, inputs_, op.reads[1]);
    values_.writable(op.writes[0].tensor);
    const View<double> y = reference::write(graph_, values_, op.writes[0]);
    std::vector<double> whole_a;
    a.copy(0, op.reads[0].rows, 0, op.reads[0].cols, whole_a);
    std::int64_t begin = 0, index = 0;
    for (const std::int64_t count : along_k ? s.depths : s.groups) {
      const std::int64_t first = begin, group = index++;
      begin += count;
      if (count == 0) continue;  // its result is zeros, or has no rows
      const std::int64_t M = along_k ? s.M : count, K = along_k ? count : s.K;
      const std::int64_t matrix = along_k ? first : group * (s.b_is_kn ? s.K : s.N);
      const BlasPanel<double> left{whole_a.data() + first * op.reads[0].cols, op.reads[0].cols,
                                   along_k};
      const double operations = 2.0 * static_cast<double>(M * s.N) * static_cast<double>(K);
      parallel_for(workers_, Loop{ceil_div(s.N, kBlock), operations}, [&](std::int64_t block, int) {
        const std::int64_t n = block * kBlock, cols = std::min(kBlock, s.N - n);
        const bool transposed = along_k || s.b_is_kn;
        std::vector<double> panel;
        if (transposed)
          b.copy(matrix, K, n, cols, panel);
        else
          b.copy(matrix + n, cols, 0, K, panel);
        multiply_into(y, along_k ? group * M : first, n, left,
                      {panel.data(), transposed ? cols : K, transposed}, M, cols, K);
      });
    }
    FUSELINE_ASSERT(begin == op.reads[0].rows, op.name + ": its groups are not its rows");
  }

  // Row n of the weight: its codes become what they are worth.
  void dequantise_row(const Op& op, const GemmShape& s, std::int64_t n, double* codes) const {
    const std::vector<ScaleTensor> beside = s.weight.beside(s.N, s.K);
    std::vector<std::vector<double>> numbers(beside.size());
    RowScales<double> row;
    for (std::size_t i = 0; i < beside.size(); ++i) {
      const ScaleTensor& t = beside[i];
      const bool of_all = t.kind == ScaleKind::tensor_scale;
      const Source source(graph_, values_, inputs_, op.reads[2 + i]);
      source.copy(of_all ? 0 : s.weight.scale_row(n), 1, 0, t.cols, numbers[i]);
      if (t.kind == ScaleKind::scale) row.scale = numbers[i].data();
      if (t.kind == ScaleKind::zero_point) row.zero_point = numbers[i].data();
      if (of_all) row.tensor_scale = numbers[i][0];
    }
    dequantise(s.weight, row, 0, s.K, codes);
  }

  const Graph& graph_;
  const Inputs& inputs_;
  Workers workers_;
  TensorValues values_;
  std::vector<AttentionSteps> attentions_;
  std::set<const Op*> begun_;  // scores of those whose gradients are computed
};

}  // namespace

TensorValues fast_reference(const Graph& graph, const Inputs& inputs, const Workers& workers) {
  use_blas_threads(1);
  return FastReference(graph, inputs, workers).run();
}

bool products_of_groups(const Op& op) {
  return op.reads.size() == 2 && !gemm_shape(op).weight.quantised();
}

}  // namespace fuseline::executor
