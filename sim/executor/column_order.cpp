#include "sim/executor/column_order.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "model/operators/operator.h"
#include "model/operators/operator_table.h"

namespace fuseline::executor {

namespace {

// Columns (or rows) [begin, begin + count) of a tensor whose pairs became adjacent in every group.
struct Reordered {
  std::int64_t begin = 0, count = 0, group = 0;
};
using Ranges = std::vector<Reordered>;

class Tracker {
 public:
  explicit Tracker(const Plan& plan) : plan_(plan), graph_(plan.graph) {
    for (const Interleaving& how : plan.preparation.interleavings)
      if (const auto id = graph_.find_tensor(how.tensor))
        (how.columns ? cols_ : rows_)[*id].push_back({how.begin, how.count, how.group});
    for (const OpId id : topological_order(graph_)) follow(graph_.op(id));
    for (const Interleaving& how : plan.preparation.results) {
      const auto id = graph_.find_tensor(how.tensor);
      FUSELINE_ASSERT(id.has_value(), how.tensor);
      (how.columns ? cols_ : rows_)[*id].push_back({how.begin, how.count, how.group});
    }
  }

  std::map<TensorId, TensorOrder> orders() const {
    std::map<TensorId, TensorOrder> result;
    for (const auto& [id, ranges] : rows_) result[id].rows = order(graph_.tensor(id).rows, ranges);
    for (const auto& [id, ranges] : cols_) result[id].cols = order(graph_.tensor(id).cols, ranges);
    return result;
  }

 private:
  // Reordered columns of an operand, from its own first column.
  [[nodiscard]] Ranges columns_of(const Operand& o) const {
    Ranges result;
    const auto found = cols_.find(o.tensor);
    if (found == cols_.end()) return result;
    for (const Reordered& r : found->second) {
      const std::int64_t begin = std::max(r.begin, o.col_begin);
      const std::int64_t end = std::min(r.begin + r.count, o.col_begin + o.cols);
      if (begin >= end) continue;
      FUSELINE_ASSERT((begin - r.begin) % r.group == 0 && (end - begin) % r.group == 0,
                      graph_.tensor(o.tensor).name + " is cut within a group of pairs");
      result.push_back({begin - o.col_begin, end - begin, r.group});
    }
    return result;
  }

  static Operand columns(Operand o, std::int64_t begin, std::int64_t count) {
    o.col_begin += begin;
    o.cols = count;
    return o;
  }

  [[nodiscard]] bool reorders(const std::string& tensor) const {
    return std::ranges::any_of(plan_.preparation.results,
                               [&](const Interleaving& i) { return i.tensor == tensor; });
  }

  void put(const Operand& written, const Ranges& ranges) {
    if (reorders(graph_.tensor(written.tensor).name)) return;
    for (const Reordered& r : ranges) {
      Ranges& known = cols_[written.tensor];
      const std::int64_t begin = written.col_begin + r.begin;
      if (std::ranges::none_of(known, [&](const Reordered& k) { return k.begin == begin; }))
        known.push_back({begin, r.count, r.group});
    }
  }

  // Every head's columns in the order of the first head's: all of them, or those that turn.
  static Ranges as_in_first_head(const Ranges& ranges, std::int64_t d, std::int64_t cols) {
    Ranges result;
    for (const Reordered& r : ranges) {
      if (r.begin >= d) continue;
      if (r.group == d) return {{0, cols, d}};
      for (std::int64_t head = 0; head < cols; head += d)
        result.push_back({head + r.begin, std::min(r.count, d - r.begin), r.group});
    }
    return result;
  }

  void follow(const Op& op) {
    const Operand& written = op.writes[0];
    switch (op.kind->columns) {
      case ColumnOrder::weight_rows: {
        // Rows of the weight become columns of the product.
        const auto weight = rows_.find(op.reads[1].tensor);
        if (weight == rows_.end()) return;
        const GemmShape shape = gemm_shape(op);
        Ranges first = weight->second;  // the other groups' rows are reordered alike
        std::erase_if(first, [&](const Reordered& r) { return r.begin >= shape.N; });
        if (!shape.b_is_kn) put(written, first);
        return;
      }
      case ColumnOrder::heads_of_second: {
        // The columns of every head as those of K or Q.
        const std::int64_t d = op.attributes.as<AttentionShape>().head_width;
        const Ranges ranges = columns_of(op.reads[1]);
        put(written, as_in_first_head(ranges, d, written.cols));
        return;
      }
      case ColumnOrder::heads: {
        const std::int64_t d = op.attributes.as<AttentionShape>().head_width;
        put(written, as_in_first_head(columns_of(op.reads[0]), d, written.cols));
        return;
      }
      case ColumnOrder::side_by_side: {
        Operand part = written;
        for (const Operand& from : op.reads) {
          part.cols = from.cols;
          put(part, columns_of(from));
          part.col_begin += from.cols;
        }
        return;
      }
      case ColumnOrder::within_heads: {
        const std::int64_t heads = op.attributes.as<HeadCount>().heads;
        Operand part = written;  // of a head; an operand may be the same for all
        for (std::int64_t head = 0; head < heads; ++head) {
          const std::int64_t end = written.col_begin + (head + 1) * (written.cols / heads);
          part.cols = op.reads[1].cols / heads;
          const std::int64_t of_first = written.cols / heads - part.cols;
          part.col_begin = end - part.cols;
          put(part, columns_of(columns(op.reads[1], head * part.cols, part.cols)));
          part.col_begin -= of_first;
          const bool shared = op.reads[0].cols == of_first;
          put(part, columns_of(columns(op.reads[0], shared ? 0 : head * of_first, of_first)));
        }
        return;
      }
      case ColumnOrder::part_of_heads: {
        const ColumnPart& from = op.attributes.as<HeadPart>().part;
        Operand part = written;
        part.cols = from.count;
        for (std::int64_t head = 0; head < written.cols / from.count; ++head) {
          const std::int64_t first = head * from.group + from.begin;
          put(part, columns_of(columns(op.reads[0], first, from.count)));
          part.col_begin += from.count;
        }
        return;
      }
      case ColumnOrder::lost:
        return;
      case ColumnOrder::kept:
        for (const Operand& w : op.writes)
          for (const Operand& from : op.reads)
            if (from.cols == w.cols) put(w, columns_of(from));
        return;
    }
  }

  static std::vector<std::int64_t> order(std::int64_t length, const Ranges& ranges) {
    std::vector<std::int64_t> from(static_cast<std::size_t>(length));
    std::iota(from.begin(), from.end(), 0);
    for (const Reordered& r : ranges) {
      for (std::int64_t i = 0; i < r.count; ++i) {
        const std::int64_t j = i % r.group;
        const std::int64_t place = j < r.group / 2 ? 2 * j : 2 * (j - r.group / 2) + 1;
        from[static_cast<std::size_t>(r.begin + i - j + place)] = r.begin + i;
      }
    }
    return from;
  }

  const Plan& plan_;
  const Graph& graph_;
  std::map<TensorId, Ranges> rows_, cols_;
};

}  // namespace

std::map<TensorId, TensorOrder> tensor_orders(const Plan& plan) { return Tracker(plan).orders(); }

}  // namespace fuseline::executor
