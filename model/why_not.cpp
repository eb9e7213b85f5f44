#include "model/why_not.h"

#include <algorithm>
#include <set>

#include "model/operators.h"

namespace fuseline {

namespace {

// Shared memory of one thread block: 227 KiB (CUDA programming guide, compute capability 9.0), the
// most of the GPUs described. The mainloop's stages take 3 × (128 + 128) × 64 bf16 of it.
constexpr std::int64_t smem_bytes = 227 * 1024;
constexpr std::int64_t stage_bytes = std::int64_t{3} * (128 + 128) * 64 * 2;
constexpr std::int64_t tile_bytes = std::int64_t{128} * 128 * 2;

bool is_main(const Op& op) { return operator_info(op.kind).locality == Locality::contraction; }
bool needs_row(const Op& op) { return operator_info(op.kind).locality == Locality::full_row; }

std::string join(const Graph& graph, const std::vector<OpId>& ops) {
  std::string text;
  for (const OpId id : ops) text += (text.empty() ? "" : "+") + graph.op(id).name;
  return text;
}

// A kernel as the rules see it.
struct Group {
  std::vector<const Op*> before;  // operators ahead of the mainloop
  std::vector<const Op*> after;
  std::vector<const Op*> mains;
  bool attention = false;
};

Group analyse(const Graph& graph, const std::vector<OpId>& ops) {
  Group g;
  std::size_t scores = 0, softmax = 0, context = 0;
  for (const OpId id : ops) {
    const OpKind kind = graph.op(id).kind;
    scores += kind == OpKind::attention_scores;
    softmax += kind == OpKind::softmax;
    context += kind == OpKind::attention_context;
  }
  g.attention = scores == 1 && softmax == 1 && context == 1;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    const bool part = g.attention && operator_info(op.kind).op_class == OpClass::attention;
    if (part && op.kind != OpKind::attention_scores) continue;
    if (is_main(op))
      g.mains.push_back(&op);
    else
      (g.mains.empty() ? g.before : g.after).push_back(&op);
  }
  return g;
}

std::string row_reason(const Op& row, const Op& main) {
  const std::int64_t width = row.reads[0].cols;
  const std::int64_t need = width * 64 * 4;  // 64 rows of fp32, the least a Hopper MMA makes
  std::string reason = row.name + " needs a full row of " + std::to_string(width) +
                       " columns, while a tile of " + main.name + " holds " +
                       std::to_string(std::min<std::int64_t>(width, 256)) + " of them";
  if (need > smem_bytes)
    reason += " (64 rows in fp32 are " + std::to_string(need / 1024) + " KiB, a thread block has " +
              std::to_string(smem_bytes / 1024) + ")";
  return reason;
}

bool pairs_apart(const Op& op) {
  return operator_info(op.kind).locality == Locality::pair_local &&
         !op.attributes.pairs_interleaved;
}

std::string why_no_gemm_program(const Graph& graph, const Group& g, const std::vector<OpId>& ops) {
  const Op& main = *g.mains.front();
  if (!g.before.empty()) {
    const Op& last = *g.before.back();
    if (last.kind == OpKind::row_stats_finish)
      return "every column tile of " + main.name + " would sum the partials of its rows again";
    if (needs_row(last))
      return last.name + " needs a full row of " + std::to_string(last.reads[0].cols) +
             " columns before the first is known, while " + main.name +
             "'s mainloop takes 64 at a time";
    return last.name + " would make the operand of " + main.name +
           "'s mainloop: every column of tiles would compute it again, and the mainloop's copies "
           "take it from memory";
  }
  if (main.kind != OpKind::gemm && !g.after.empty()) {
    if (needs_row(*g.after.front())) return row_reason(*g.after.front(), main);
    return g.after.front()->name + " works on tokens, " + main.name + " on heads";
  }
  std::set<TensorId> made;
  for (const OpId id : ops)
    for (const Operand& w : graph.op(id).writes) made.insert(w.tensor);
  std::set<TensorId> tiles;
  for (const Op* op : g.after) {
    if (op->kind == OpKind::row_stats_finish)
      return op->name +
             " needs the partials of all column tiles of its rows: other thread "
             "blocks make them";
    if (needs_row(*op)) return row_reason(*op, main);
    if (pairs_apart(*op))
      return "the pairs of " + op->name + " are in different tiles of " + main.name +
             " until the weight's rows are interleaved";
    if (op->kind == OpKind::embedding) return op->name + " gathers rows by token";
    if (op->writes[0].rows != main.writes[0].rows && op->kind != OpKind::cache_append)
      return op->name + " has other rows than " + main.name;
    for (const Operand& r : op->reads)
      if (!made.contains(r.tensor) && r.rows == main.writes[0].rows && r.cols > 1)
        tiles.insert(r.tensor);
  }
  const std::int64_t room = (smem_bytes - stage_bytes) / tile_bytes;
  if (static_cast<std::int64_t>(tiles.size()) > room)
    return "the mainloop's stages and " + std::to_string(tiles.size()) +
           " operand tiles exceed shared memory (room for " + std::to_string(room) + ")";
  return "";
}

std::string why_no_attention_program(const Group& g) {
  const Op& main = *g.mains.front();
  for (const Op* op : g.before) {
    if (op->kind != OpKind::rope && op->kind != OpKind::cache_append)
      return op->name +
             " ahead of attention: only RoPE and the cache write are done to Q, K, V "
             "as they are loaded";
  }
  for (const Op* op : g.after) {
    if (needs_row(*op)) return row_reason(*op, main);
    if (pairs_apart(*op) || op->kind == OpKind::row_stats_partial ||
        op->kind == OpKind::row_stats_finish)
      return op->name + " crosses heads, while a tile of attention holds one";
  }
  return "";
}

// Without a mainloop: one index space for all, and only one row width where rows are resident.
std::string why_no_stream_program(const Graph& graph, const std::vector<OpId>& ops) {
  const Op* row = nullptr;
  const Op* widest = nullptr;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    if (needs_row(op)) {
      if (row != nullptr && row->reads[0].cols != op.reads[0].cols)
        return row->name + " and " + op.name + " reduce rows of different widths";
      row = &op;
    }
    if (widest == nullptr || op.writes[0].cols > widest->writes[0].cols) widest = &op;
  }
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    const Op& other = row != nullptr ? *row : *widest;
    if (op.kind == OpKind::embedding && ops.size() > 1) return op.name + " gathers rows by token";
    const bool finisher = op.kind == OpKind::row_stats_finish;
    if (finisher && ops.size() > 1)
      return op.name +
             " needs the partials of all column tiles of its rows: other thread blocks "
             "make them";
    if (op.reads[0].rows != other.reads[0].rows)
      return op.name + " and " + other.name + " have different rows";
    const auto fits = [&](std::int64_t cols) {
      return cols == 1 || cols == op.reads[0].cols || cols == op.writes[0].cols;
    };
    const bool reduces = other.writes[0].cols == 1;
    if (!fits(reduces ? other.reads[0].cols : other.writes[0].cols) && op.writes[0].cols != 1)
      return op.name + " and " + other.name + " have different widths";
  }
  return "";
}

}  // namespace

namespace {

// The groups that depend on `start` (forward) or that it depends on.
std::vector<bool> reach(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                        std::size_t start, bool forward) {
  std::vector<std::size_t> group_of_op(graph.ops().size(), groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const OpId id : groups[g]) group_of_op[static_cast<std::size_t>(id.index)] = g;
  std::vector<bool> reached(groups.size() + 1);
  std::vector<std::size_t> open{start};
  const std::vector<Edge> all = edges(graph);
  while (!open.empty()) {
    const std::size_t g = open.back();
    open.pop_back();
    for (const Edge& e : all) {
      const std::size_t from =
          group_of_op[static_cast<std::size_t>((forward ? e.from : e.to).index)];
      const std::size_t to = group_of_op[static_cast<std::size_t>((forward ? e.to : e.from).index)];
      if (from != g || reached[to]) continue;
      reached[to] = true;
      open.push_back(to);
    }
  }
  return reached;
}

}  // namespace

bool library_epilogue(const Op& op) {
  return op.kind == OpKind::bias_add || op.kind == OpKind::gelu;
}

std::string why_no_program(const Graph& graph, const std::vector<OpId>& ops) {
  const Group g = analyse(graph, ops);
  if (g.mains.size() > 1) {
    const auto name = [&](const Op& op) {
      return g.attention && operator_info(op.kind).op_class == OpClass::attention ? "attention"
                                                                                  : op.name;
    };
    return "second mainloop: a tile of " + name(*g.mains[1]) +
           " sums over columns that other tiles of " + name(*g.mains[0]) + " make";
  }
  if (g.mains.empty()) return why_no_stream_program(graph, ops);
  return g.attention ? why_no_attention_program(g) : why_no_gemm_program(graph, g, ops);
}

std::string why_not_merge(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                          std::size_t a, std::size_t b) {
  std::vector<OpId> merged = groups[a];
  merged.insert(merged.end(), groups[b].begin(), groups[b].end());
  std::vector<OpId> ordered;
  for (const OpId id : topological_order(graph))
    if (std::find(merged.begin(), merged.end(), id) != merged.end()) ordered.push_back(id);
  const std::string reason = why_no_program(graph, ordered);
  if (!reason.empty()) return reason;

  std::vector<std::vector<OpId>> rest{ordered};
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (i != a && i != b) rest.push_back(groups[i]);
  return why_cycle(graph, rest, 0);
}

std::string why_cycle(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                      std::size_t group) {
  if (order_groups(graph, groups)) return "";
  const std::vector<bool> after = reach(graph, groups, group, true);
  const std::vector<bool> before = reach(graph, groups, group, false);
  std::string on_cycle;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (i != group && after[i] && before[i])
      on_cycle += (on_cycle.empty() ? "" : ", ") + join(graph, groups[i]);
  return "cycle through " + (on_cycle.empty() ? "other kernels" : on_cycle) +
         ": it needs the one and feeds the other";
}

}  // namespace fuseline
