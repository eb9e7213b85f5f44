#include "model/why_not.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "model/chain.h"
#include "model/lower.h"
#include "model/lower_attention.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/programs/block_programs.h"
#include "model/why_no_stream.h"
#include "model/wiring.h"

namespace fuseline {

namespace {

// Whose partials an epilogue's tiles may sum themselves.
bool finishes_in_epilogue(const Op& op) {
  const auto* statistics = op.attributes.get<RowStatistics>();
  return is_finisher(op) && statistics != nullptr && statistics->in_epilogue;
}
bool is_read_by(const std::vector<const Op*>& ops, TensorId tensor) {
  return std::ranges::any_of(ops, [tensor](const Op* op) {
    return std::ranges::any_of(op->reads,
                               [tensor](const Operand& r) { return r.tensor == tensor; });
  });
}

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
  bool gradient = false;  // of attention
};

Group analyse(const Graph& graph, const std::vector<OpId>& ops) {
  Group g;
  const auto has = [&](OpKind kind) {
    return std::ranges::count_if(ops, [&](OpId id) { return graph.op(id).kind == kind; }) == 1;
  };
  g.gradient = has(operators::attention_scores) && has(operators::softmax_recompute) &&
               has(operators::attention_d_q) && has(operators::attention_d_k) &&
               has(operators::attention_d_v);
  g.attention = g.gradient || (has(operators::attention_scores) && has(operators::softmax) &&
                               has(operators::attention_context));
  for (const OpId id : mainloop_first(graph, ops)) {
    const Op& op = graph.op(id);
    const bool part = g.attention && op.kind->attention;
    if (part && op.kind != operators::attention_scores) continue;
    if (is_contraction(op))
      g.mains.push_back(&op);
    else
      (g.mains.empty() ? g.before : g.after).push_back(&op);
  }
  return g;
}

std::string row_reason(const Op& row, const Op& main, const Target& target) {
  const std::int64_t smem_bytes = target.shared_bytes_per_block;
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
  return op.kind->locality == Locality::pair_local && !has_adjacent_pairs(op);
}

// Whole heads lie in a tile when it begins and ends with one.
std::string heads_reason(const Graph& graph, const Op& op, const Op& main, const Target& target) {
  FUSELINE_ASSERT(op.kind->head_width != nullptr, op.name);
  const std::int64_t d = op.kind->head_width(op);
  if (target.tile.n % d != 0)
    return op.name + " needs whole heads of " + std::to_string(d) + " columns, while tiles of " +
           main.name + " hold " + std::to_string(target.tile.n);
  // Behind pairs that became one column a head takes twice as many of the product's: a tile so wide
  // has two stages in shared memory, or there is none.
  constexpr std::int64_t kStages = 2, kWidest = 256, kElement = 2;
  const std::vector<OpId> makers = graph.producers(op.reads[0].tensor);
  const bool of_pairs = makers.size() == 1 && is_gated(graph.op(makers[0]));
  const std::int64_t wide = std::max(target.tile.n, 2 * d);
  const std::int64_t bytes = kStages * (target.tile.m + wide) * target.tile.k * kElement;
  if (of_pairs && (wide > kWidest || bytes > target.shared_bytes_per_block))
    return op.name + " needs whole heads of " + std::to_string(d) + " columns, which are " +
           std::to_string(2 * d) + " of " + main.name + "'s, more than its tiles have";
  for (const Operand& r : op.reads)
    if (r.tensor == main.writes[0].tensor && (r.col_begin - main.writes[0].col_begin) % d != 0)
      return op.name + " begins within a head of " + std::to_string(d) + " columns";
  return "";
}

// Column sums are made in tiles of 128 rows, of which the widest have 256 columns. What a slab of
// 64 columns loads of the operands has to fit one of the mainloop's stages beside the next tile.
std::string stage_reason(std::size_t tiles, std::size_t vectors, const Op& main) {
  constexpr std::size_t kRows = 128, kWidest = 256, kSlab = 64, kElement = 2;
  constexpr std::size_t kVector = 256;  // bytes that a slab's part of a vector takes
  constexpr std::size_t kStage = (kRows + kWidest) * kSlab * kElement;
  if (tiles * kRows * kSlab * kElement + vectors * kVector <= kStage) return "";
  return std::to_string(tiles) + " operand tiles and " + std::to_string(vectors) +
         " vectors exceed a stage of " + main.name + "'s mainloop (" +
         std::to_string(kStage / 1024) + " KiB), through which an epilogue loads";
}

// An operator that reads two equally wide parts of what the mainloop makes, column beside column:
// the halves of gate and up, as a framework's activation and multiplication read them. Such parts
// are in different tiles.
std::string parts_apart(const Op& main, const std::vector<const Op*>& after) {
  // Which column of the result belongs to a tensor's first one.
  std::map<TensorId, std::int64_t> places = {{main.writes[0].tensor, -main.writes[0].col_begin}};
  for (const Op* op : after) {
    if (op->kind->columns == ColumnOrder::side_by_side)
      continue;  // it reads one part after the other
    const Operand* first = nullptr;
    const auto column = [&](const Operand& r) { return places.at(r.tensor) + r.col_begin; };
    for (const Operand& r : op->reads) {
      if (!places.contains(r.tensor) || r.cols <= 1) continue;
      if (first == nullptr) first = &r;
      if (r.cols != first->cols || column(r) == column(*first)) continue;
      return op->name + " reads columns " + std::to_string(column(*first)) + " and " +
             std::to_string(column(r)) + " of " + main.name +
             " beside each other, which are in different tiles";
    }
    if (first == nullptr || op->kind->locality != Locality::tile_local) continue;
    for (const Operand& w : op->writes)
      if (w.cols == first->cols) places.try_emplace(w.tensor, column(*first) - w.col_begin);
  }
  return "";
}

std::string why_no_gemm_program(const Graph& graph, const Group& g, const std::vector<OpId>& ops,
                                const Target& target) {
  const Op& main = *g.mains.front();
  if (!g.before.empty()) {
    const Op& last = *g.before.back();
    if (is_finisher(last))
      return "every column tile of " + main.name + " would sum the partials of its rows again";
    if (needs_full_row(last))
      return last.name + " needs a full row of " + std::to_string(last.reads[0].cols) +
             " columns before the first is known, while " + main.name +
             "'s mainloop takes 64 at a time";
    return last.name + " would make the operand of " + main.name +
           "'s mainloop: every column of tiles would compute it again, and the mainloop's copies "
           "take it from memory";
  }
  if (main.kind->attention && !g.after.empty()) {
    if (needs_full_row(*g.after.front())) return row_reason(*g.after.front(), main, target);
    return g.after.front()->name + " works on tokens, " + main.name + " on heads";
  }
  std::set<TensorId> made;
  for (const OpId id : ops)
    for (const Operand& w : graph.op(id).writes) made.insert(w.tensor);
  std::set<TensorId> tiles, vectors, statistics;
  bool sums_columns = false;
  for (const Op* op : g.after) {
    sums_columns = sums_columns || op->kind->partial == Sums::columns;
    if (finishes_in_epilogue(*op) && !made.contains(op->reads[0].tensor)) {
      if (!is_read_by(g.after, op->writes[0].tensor))
        return op->name + " makes nothing that this kernel takes, and every column tile of " +
               main.name + " would make it again";
      continue;
    }
    if (is_finisher(*op)) return finisher_reason(*op);
    if (needs_full_column(*op))
      return op->name + " sums over all " + std::to_string(op->reads[0].rows) +
             " rows, while a tile of " + main.name + " holds 128 of them";
    if (needs_full_row(*op)) return row_reason(*op, main, target);
    if (needs_whole_heads(*op)) {
      if (std::string reason = heads_reason(graph, *op, main, target); !reason.empty())
        return reason;
    }
    if (pairs_apart(*op))
      return "the pairs of " + op->name + " are in different tiles of " + main.name +
             " until the weight's rows are interleaved";
    if (op->kind->alone != nullptr) return op->name + " " + op->kind->alone;
    if (op->kind->extent(*op).rows != main.writes[0].rows &&
        graph.tensor(op->writes[0].tensor).role != Role::cache)
      return op->name + " has other rows than " + main.name;
    // With one row a bias is as tall as a tile, and still no tile.
    for (std::size_t i = 0; i < op->reads.size(); ++i) {
      const Operand& r = op->reads[i];
      const bool tile = std::string_view(op->kind->reads[i].rows) == "M" && r.cols > 1;
      if (tile && !made.contains(r.tensor) && r.rows == main.writes[0].rows) tiles.insert(r.tensor);
      if (tile && r.cols == 2) statistics.insert(r.tensor);  // numbers of rows come another way
      if (std::string_view(op->kind->reads[i].rows) == "1") vectors.insert(r.tensor);
    }
  }
  if (std::string apart = parts_apart(main, g.after); !apart.empty()) return apart;
  const std::int64_t room = target.operand_tiles();
  if (static_cast<std::int64_t>(tiles.size()) > room)
    return "the mainloop's stages and " + std::to_string(tiles.size()) +
           " operand tiles exceed shared memory (room for " + std::to_string(room) + ")";
  if (sums_columns) {
    std::erase_if(tiles, [&](TensorId id) { return statistics.contains(id); });
    return stage_reason(tiles.size(), vectors.size(), main);
  }
  return "";
}

std::string why_no_attention_program(const Group& g, const Target& target) {
  const Op& main = *g.mains.front();
  if (g.gradient && g.before.size() + g.after.size() > 0) {
    const Op& other = g.before.empty() ? *g.after.front() : *g.before.front();
    return other.name + " beside attention's gradient: its tiles of dQ, dK and dV are complete " +
           "only when other thread blocks have added to them";
  }
  for (const Op* op : g.before) {
    if (!op->kind->before_attention)
      return op->name +
             " ahead of attention: only RoPE and the cache write are done to Q, K, V "
             "as they are loaded";
  }
  for (const Op* op : g.after) {
    if (needs_full_row(*op)) return row_reason(*op, main, target);
    if (is_finisher(*op)) return finisher_reason(*op);
    if (pairs_apart(*op) || leaves_partials(*op) || needs_full_column(*op) ||
        needs_whole_heads(*op))
      return op->name + " crosses heads, while a tile of attention holds one";
  }
  return "";
}

// A tile of a scan has one head of a chunk of tokens.
std::string why_no_scan_program(const Graph& graph, const Group& g, const std::vector<OpId>& ops,
                                const Target& target) {
  const Op& main = *g.mains.front();
  for (const Op* op : g.after) {
    const bool of_state = std::ranges::any_of(op->reads, [&](const Operand& r) {
      return std::ranges::any_of(main.writes.begin() + 1, main.writes.end(),
                                 [&](const Operand& w) { return w.tensor == r.tensor; });
    });
    if (of_state)
      return op->name + " reads " +
             (main.pass == Pass::backward ? "a sum" : "the state behind the last token") +
             ", which " + main.name + " has when its last tile is done";
    if (op->kind->locality == Locality::pair_local || needs_whole_heads(*op) ||
        needs_full_row(*op) || needs_full_column(*op) || leaves_partials(*op))
      return op->name + " crosses heads or chunks, while a tile of " + main.name +
             " holds one of each";
  }
  return why_no_gemm_program(graph, g, ops, target);
}

// What reads rows above its tile, or rows at places that only the data knows, takes them from
// memory: those tiles are other thread blocks'.
std::string why_no_other_rows(const Graph& graph, const std::vector<OpId>& ops, bool mainloop) {
  if (ops.size() == 1) return "";
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    const bool above = op.kind->locality == Locality::row_halo;
    if (!above && op.kind->locality != Locality::rows_elsewhere) continue;
    const std::string reads =
        op.name + (above ? " reads rows above its tile" : " reads rows of other tiles");
    if (mainloop) return reads + ", which no mainloop's epilogue has";
    for (const OpId other : ops) {
      for (const Operand& w : graph.op(other).writes)
        for (const Operand& r : op.reads)
          if (r.tensor == w.tensor)
            return reads + ", which other thread blocks of " + graph.op(other).name + " make";
      if (!above && graph.op(other).kind->extent(graph.op(other)).rows != op.writes[0].rows)
        return op.name + " and " + graph.op(other).name + " have different rows";
    }
  }
  return "";
}

// The groups that depend on `start` (forward) or that it depends on.
std::vector<bool> reach(const Graph& graph, const std::vector<Edge>& all,
                        const std::vector<std::vector<OpId>>& groups, std::size_t start,
                        bool forward) {
  std::vector<std::size_t> group_of_op(graph.ops().size(), groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const OpId id : groups[g]) group_of_op[static_cast<std::size_t>(id.index)] = g;
  std::vector<bool> reached(groups.size() + 1);
  std::vector<std::size_t> open{start};
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

// Whether each group can be computed when all that it needs is: groups are taken away that need
// none of those left. Asked for every edge while groups grow, so it makes no order that nobody
// reads, as order_groups() does. Operators in no group are groups of their own.
bool have_an_order(const Graph& graph, const std::vector<Edge>& all,
                   const std::vector<std::vector<OpId>>& groups) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> group_of_op(graph.ops().size(), kNone);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const OpId id : groups[g]) group_of_op[static_cast<std::size_t>(id.index)] = g;
  std::size_t count = groups.size();
  for (std::size_t& g : group_of_op)
    if (g == kNone) g = count++;
  // The groups that each feeds, one behind the other, and how many feed it.
  std::vector<std::size_t> first(count + 1), needs(count);
  const auto for_each_pair = [&](const auto& visit) {
    for (const Edge& e : all) {
      const std::size_t from = group_of_op[static_cast<std::size_t>(e.from.index)];
      const std::size_t to = group_of_op[static_cast<std::size_t>(e.to.index)];
      if (from != to) visit(from, to);
    }
  };
  for_each_pair([&](std::size_t from, std::size_t to) {
    ++first[from + 1];
    ++needs[to];
  });
  for (std::size_t g = 0; g < count; ++g) first[g + 1] += first[g];
  std::vector<std::size_t> fed(first.back()), next(first.begin(), first.end() - 1);
  for_each_pair([&](std::size_t from, std::size_t to) { fed[next[from]++] = to; });
  std::vector<std::size_t> ready;
  ready.reserve(count);
  for (std::size_t g = 0; g < count; ++g)
    if (needs[g] == 0) ready.push_back(g);
  for (std::size_t done = 0; done < ready.size(); ++done)
    for (std::size_t i = first[ready[done]]; i < first[ready[done] + 1]; ++i)
      if (--needs[fed[i]] == 0) ready.push_back(fed[i]);
  return ready.size() == count;
}

std::string why_cycle_of(const Graph& graph, const Wiring& wiring,
                         const std::vector<std::vector<OpId>>& groups, std::size_t group) {
  if (have_an_order(graph, wiring.edges, groups)) return "";
  const std::vector<bool> after = reach(graph, wiring.edges, groups, group, true);
  const std::vector<bool> before = reach(graph, wiring.edges, groups, group, false);
  std::string on_cycle;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (i != group && after[i] && before[i])
      on_cycle += (on_cycle.empty() ? "" : ", ") + join(graph, groups[i]);
  return "cycle through " + (on_cycle.empty() ? "other kernels" : on_cycle) +
         ": it needs the one and feeds the other";
}

}  // namespace

std::string why_no_program(const Graph& graph, const std::vector<OpId>& ops, const Target& target) {
  for (const OpId id : ops)
    if (graph.op(id).pass != graph.op(ops.front()).pass)
      return "between the forward and the backward pass lies the rest of the model";
  for (const OpId id : ops)
    if (ops.size() > 1 && is_own_program(graph.op(id)))
      return graph.op(id).name + " is a program of its own, which its author wrote as one kernel";
  const Group g = analyse(graph, ops);
  if (const auto chain = parts_of_chain(graph, ops)) {
    for (const std::vector<OpId>* part : {&chain->first, &chain->second})
      if (std::string reason = why_no_program(graph, *part, target); !reason.empty()) return reason;
    return why_no_chain(graph, *chain, target);
  }
  if (g.mains.size() > 1) {
    const auto name = [&](const Op& op) {
      return g.attention && op.kind->attention ? "attention" : op.name;
    };
    return "second mainloop: a tile of " + name(*g.mains[1]) +
           " sums over columns that other tiles of " + name(*g.mains[0]) + " make";
  }
  if (std::string other = why_no_other_rows(graph, ops, !g.mains.empty()); !other.empty())
    return other;
  if (g.mains.empty()) return why_no_stream_program(graph, ops);
  if (g.mains.front()->kind->op_class == OpClass::scan)
    return why_no_scan_program(graph, g, ops, target);
  return g.attention ? why_no_attention_program(g, target)
                     : why_no_gemm_program(graph, g, ops, target);
}

std::string why_not_merge(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                          std::size_t a, std::size_t b, const Target& target) {
  return why_not_merge(graph, Wiring(graph), groups, a, b, target);
}

std::string why_not_merge(const Graph& graph, const Wiring& wiring,
                          const std::vector<std::vector<OpId>>& groups, std::size_t a,
                          std::size_t b, const Target& target) {
  std::vector<OpId> merged = groups[a];
  merged.insert(merged.end(), groups[b].begin(), groups[b].end());
  std::vector<OpId> ordered;
  for (const OpId id : wiring.order)
    if (std::find(merged.begin(), merged.end(), id) != merged.end()) ordered.push_back(id);
  const std::string reason = why_no_program(graph, ordered, target);
  if (!reason.empty()) return reason;

  std::vector<std::vector<OpId>> rest{ordered};
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (i != a && i != b) rest.push_back(groups[i]);
  return why_cycle_of(graph, wiring, rest, 0);
}

std::string why_cycle(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                      std::size_t group) {
  return why_cycle_of(graph, Wiring(graph), groups, group);
}

}  // namespace fuseline
