#include "sim/executor/reference_fast.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/error.h"
#include "model/operators.h"
#include "model/reference_heads.h"
#include "model/reference_view.h"
#include "sim/executor/blas.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kBlock = 256;  // rows or columns of a product that one task computes

using reference::View;

// Rows [row, row + rows) × columns [col, col + cols) of an operand as doubles, contiguous.
class Source {
 public:
  Source(const Graph& graph, const TensorValues& values, const Inputs& inputs, const Operand& o)
      : operand_(o) {
    const Tensor& t = graph.tensor(o.tensor);
    if (values.has(o.tensor)) {
      computed_ = values.at(o.tensor).data();
    } else {
      const auto found = inputs.find(t.name);
      if (found == inputs.end())
        throw InputError({.field = t.name, .message = "the input tensor is missing"});
      stored_ = found->second.get();
    }
    stride_ = t.cols;
  }

  void copy(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
            std::vector<double>& to) const {
    to.resize(static_cast<std::size_t>(rows * cols));
    std::vector<float> line(static_cast<std::size_t>(cols));
    for (std::int64_t r = 0; r < rows; ++r) {
      double* out = to.data() + r * cols;
      if (computed_ != nullptr) {
        std::copy_n(computed_ + (row + r) * stride_ + operand_.col_begin + col, cols, out);
        continue;
      }
      stored_->read(row + r, operand_.col_begin + col, cols, line.data());
      std::copy(line.begin(), line.end(), out);
    }
  }

 private:
  Operand operand_;
  const double* computed_ = nullptr;
  const Storage* stored_ = nullptr;
  std::int64_t stride_ = 0;
};

class FastReference {
 public:
  FastReference(const Graph& graph, const Inputs& inputs, const Workers& workers)
      : graph_(graph), inputs_(inputs), workers_(workers), values_(graph) {}

  TensorValues run() {
    for (const OpId id : topological_order(graph_)) {
      const Op& op = graph_.op(id);
      const std::vector<std::string> problems = check_operands(graph_, op);
      FUSELINE_ASSERT(problems.empty(), problems[0]);
      if (op.kind == OpKind::gemm) {
        gemm(op);
      } else if (op.kind == OpKind::attention_scores && alone(op)) {
        continue;  // with the context that follows
      } else if (op.kind == OpKind::softmax && streamed_.contains(op.reads[0].tensor)) {
        streamed_.insert(op.writes[0].tensor);
      } else if (op.kind == OpKind::attention_context && streamed_.contains(op.reads[0].tensor)) {
        attention(op);
      } else {
        for (const Operand& o : op.reads) load(o.tensor);
        for (const Operand& o : op.writes)
          if (graph_.tensor(o.tensor).role == Role::cache) load(o.tensor);
        operator_info(op.kind).reference(graph_, op, values_, values_);
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

  // Scores whose only way on is softmax and context, and nothing else reads either.
  bool alone(const Op& scores) {
    const std::vector<OpId> softmax = graph_.consumers(scores.writes[0].tensor);
    if (softmax.size() != 1 || graph_.op(softmax[0]).kind != OpKind::softmax) return false;
    const Op& s = graph_.op(softmax[0]);
    if (s.writes.size() != 1) return false;
    const std::vector<OpId> context = graph_.consumers(s.writes[0].tensor);
    if (context.size() != 1 || graph_.op(context[0]).kind != OpKind::attention_context)
      return false;
    streamed_.insert(scores.writes[0].tensor);
    scores_ = scores;
    return true;
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
    const BlasPanel<double> left{whole_a.data(), s.a_is_km ? s.M : s.K, s.a_is_km};
    parallel_for(workers_, ceil_div(s.N, kBlock), [&](std::int64_t block, int) {
      const std::int64_t n = block * kBlock;
      const std::int64_t count = std::min(kBlock, s.N - n);
      std::vector<double> panel;
      if (s.b_is_kn) {
        b.copy(0, s.K, n, count, panel);
      } else {
        b.copy(n, count, 0, s.K, panel);
      }
      multiply(left, {panel.data(), s.b_is_kn ? count : s.K, s.b_is_kn}, s.M, count, s.K, 0.0,
               y.data + n, y.stride);
    });
  }

  // One head and block of queries at a time.
  void attention(const Op& context) {
    const OpAttributes& a = scores_.attributes;
    const Source q(graph_, values_, inputs_, scores_.reads[0]);
    const Operand& k_operand = scores_.reads[1];
    const Source k(graph_, values_, inputs_, k_operand);
    const Source v(graph_, values_, inputs_, context.reads[1]);
    values_.writable(context.writes[0].tensor);
    const View<double> y = reference::write(graph_, values_, context.writes[0]);
    const std::int64_t span = k_operand.rows / a.batch;
    const std::int64_t tokens = graph_.tensor(k_operand.tensor).rows / a.batch;
    const std::int64_t d = a.head_width;
    parallel_for(workers_, a.batch * a.heads, [&](std::int64_t index, int) {
      const std::int64_t b = index / a.heads;
      const std::int64_t h = index % a.heads;
      const std::int64_t kv_head = h / (a.heads / a.kv_heads);
      std::vector<double> queries, keys, rows, scores;
      k.copy(b * tokens + tokens - span, span, kv_head * d, d, keys);
      v.copy(b * tokens + tokens - span, span, kv_head * d, d, rows);
      for (std::int64_t first = 0; first < a.q_tokens; first += kBlock) {
        const std::int64_t count = std::min(kBlock, a.q_tokens - first);
        q.copy(b * a.q_tokens + first, count, h * d, d, queries);
        scores.resize(static_cast<std::size_t>(count * span));
        multiply({queries.data(), d, false}, {keys.data(), d, false}, count, span, d, 0.0,
                 scores.data(), span);
        for (std::int64_t t = 0; t < count; ++t)
          softmax(scores.data() + t * span, span, reference::visible(a, span, first + t), a.scalar);
        multiply({scores.data(), span, false}, {rows.data(), d, true}, count, d, span, 0.0,
                 y.data + (b * a.q_tokens + first) * y.stride + h * d, y.stride);
      }
    });
  }

  static void softmax(double* s, std::int64_t count, reference::Columns seen, double scale) {
    const double largest = *std::max_element(s + seen.begin, s + seen.end) * scale;
    double sum = 0;
    for (std::int64_t i = seen.begin; i < seen.end; ++i)
      sum += s[i] = std::exp(s[i] * scale - largest);
    for (std::int64_t i = 0; i < count; ++i)
      s[i] = i >= seen.begin && i < seen.end ? s[i] / sum : 0.0;
  }

  const Graph& graph_;
  const Inputs& inputs_;
  Workers workers_;
  TensorValues values_;
  std::set<TensorId> streamed_;  // scores and probabilities that are never whole in memory
  Op scores_;
};

}  // namespace

TensorValues fast_reference(const Graph& graph, const Inputs& inputs, const Workers& workers) {
  use_blas_threads(1);
  return FastReference(graph, inputs, workers).run();
}

}  // namespace fuseline::executor
