#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "model/operators/support/heads.h"
#include "sim/executor/online_softmax.h"
#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"
#include "sim/memory/visible_keys.h"

namespace fuseline::executor {

namespace {

// What one thread works with.
struct Worker {
  TileInterpreter body;
  TileInterpreter q, k, v;  // the prologue, for what each of them needs of it
  Matrix queries{}, scores{};
  std::vector<float> keys{}, values{}, bias{};
  std::vector<SeenKeys> seen{};
  std::vector<OnlineSoftmax> splits{};
};

// Layout of the prologue where one value is what its tiles are cut from.
ValueAnalysis prologue_layout(const Program& program, Value anchor, std::int64_t cols) {
  if (anchor >= 0) return {program.prologue, anchor, cols, false};
  return {program.prologue, -1, cols, false};
}

// The log-sum-exp that the mainloop also makes.
std::vector<MainloopResult> sums_of(const AttentionMainloop& m) {
  if (m.log_sum_exp < 0) return {};
  return {{m.log_sum_exp, Form::per_row, 1}};
}

class AttentionRun {
 public:
  AttentionRun(const RunContext& context, const AttentionMainloop& m)
      : context_(context),
        m_(m),
        shape_(m.shape),
        span_(m.k.rows / m.shape.batch),
        query_tiles_(ceil_div(m.shape.q_tokens, context.schedule.tile.m)),
        body_layout_(context.program.body, 0, m.shape.heads * m.shape.v_width(), false, sums_of(m)),
        q_layout_(prologue_layout(context.program, m.q_value, m.q.cols)),
        k_layout_(prologue_layout(context.program, m.k_value, m.k.cols)),
        v_layout_(prologue_layout(context.program, m.v_value, m.v.cols)),
        store_layout_(prologue_layout(context.program, -1, m.k.cols)) {
    FUSELINE_ASSERT(shape_.heads % shape_.kv_heads == 0, context.program.name);
    const std::vector<Primitive>& prologue = context.program.prologue;
    const auto fault = context.fault_in(true);
    for (int t = 0; t < context.workers.threads; ++t)
      workers_.push_back({{context.program.body, body_layout_, partials_, context.fault_in(false)},
                          {prologue, q_layout_, partials_, fault},
                          {prologue, k_layout_, partials_, fault},
                          {prologue, v_layout_, partials_, fault}});
  }

  void run() {
    if (!stores_of_prologue().empty()) append();
    const std::int64_t heads = shape_.batch * shape_.heads;
    const double pairs = static_cast<double>(heads * shape_.q_tokens) * static_cast<double>(span_);
    const Loop loop{heads * query_tiles_,
                    2 * pairs * static_cast<double>(shape_.head_width + shape_.v_width())};
    parallel_for(context_.workers, loop, [&](std::int64_t index, int thread) {
      run_tile(index / query_tiles_, index % query_tiles_, thread);
    });
    partials_.finish(context_.port(0));
  }

 private:
  std::vector<const Primitive*> stores_of_prologue() const {
    std::vector<const Primitive*> found;
    for (const Primitive& p : context_.program.prologue)
      if (std::ranges::any_of(p.accesses(), &Access::store)) found.push_back(&p);
    return found;
  }

  [[nodiscard]] static TileArea area(std::int64_t row_begin, std::int64_t rows, std::int64_t head,
                                     std::int64_t width) {
    TileArea a;
    a.row_begin = row_begin;
    a.row_end = row_begin + rows;
    a.columns = {head * width, (head + 1) * width};
    return a;
  }

  // Stores of the prologue (new cache rows), each row and head once, before anyone reads them.
  void append() {
    PartialSums none;
    std::vector<TileInterpreter> interpreters;
    for (int t = 0; t < context_.workers.threads; ++t)
      interpreters.emplace_back(context_.program.prologue, store_layout_, none,
                                context_.fault_in(true));
    const std::int64_t tile = context_.schedule.tile.m;
    const std::int64_t count = shape_.batch * shape_.kv_heads * query_tiles_;
    parallel_for(context_.workers, count, [&](std::int64_t index, int thread) {
      const std::int64_t first = index % query_tiles_ * tile;
      const std::int64_t sequence = index / query_tiles_ / shape_.kv_heads;
      const std::int64_t head = index / query_tiles_ % shape_.kv_heads;
      TileInterpreter& interpreter = interpreters[static_cast<std::size_t>(thread)];
      interpreter.begin(area(sequence * shape_.q_tokens + first,
                             std::min(tile, shape_.q_tokens - first), head, shape_.head_width));
      interpreter.run(context_.port(thread), {}, true);
    });
  }

  // Rows of an operand, or of the value that a prologue makes in its place.
  void fetch(const Operand& operand, Value value, TileInterpreter& prologue, const TileArea& where,
             Port& port, float* to) const {
    const std::int64_t d = where.columns.count();
    if (value >= 0) {
      prologue.begin(where);
      prologue.run(port, std::span(&value, 1), false);
      const Matrix& made = prologue.value(value);
      std::copy(made.data.begin(), made.data.end(), to);
      return;
    }
    for (std::int64_t r = 0; r < where.rows(); ++r)
      port.load(operand, where.row_begin + r, where.columns.begin, d, to + r * d);
  }

  // Codes of keys or values become what they are worth. A head's scale is a factor of its scores,
  // or of its probabilities: an exact one in fp32.
  static void dequantise(const std::optional<Operand>& scale, const TileArea& where,
                         std::int64_t kv_head, Port& port, float* codes) {
    if (!scale) return;
    const std::int64_t width = where.columns.count();
    for (std::int64_t r = 0; r < where.rows(); ++r) {
      float of_row = 0;
      port.load(*scale, where.row_begin + r, kv_head, 1, &of_row);
      for (std::int64_t c = 0; c < width; ++c) codes[r * width + c] *= of_row;
    }
  }

  // Keys of the operand's rows that the tile of queries can see.
  [[nodiscard]] KeyRange keys_of(std::int64_t first, std::int64_t count) const {
    const KeyRange positions = visible_keys(shape_, first, count);
    const std::int64_t before = shape_.kv_tokens - span_;  // positions that the operand leaves out
    return {std::max<std::int64_t>(0, positions.begin - before), positions.end - before};
  }

  // Scores of the tile as softmax takes them: scaled, capped, biased.
  void finish_scores(std::int64_t head, std::int64_t first, std::int64_t first_key, Port& port,
                     Worker& w) const {
    const float cap = static_cast<float>(shape_.softcap);
    for (float& s : w.scores.data) s *= static_cast<float>(shape_.scale);
    if (cap > 0)
      for (float& s : w.scores.data) s = cap * std::tanh(s / cap);
    if (!m_.bias) return;
    w.bias.resize(static_cast<std::size_t>(w.scores.cols));
    for (std::int64_t q = 0; q < w.scores.rows; ++q) {
      port.load(*m_.bias, head * shape_.q_tokens + first + q, first_key, w.scores.cols,
                w.bias.data());
      float* s = w.scores.row(q);
      for (std::int64_t k = 0; k < w.scores.cols; ++k) s[k] += w.bias[static_cast<std::size_t>(k)];
    }
  }

  void see(std::int64_t first, std::int64_t begin, std::int64_t end, Worker& w) const {
    const std::int64_t queries = w.queries.rows;
    w.seen.resize(static_cast<std::size_t>(queries));
    for (std::int64_t q = 0; q < queries; ++q) {
      reference::Seen all = reference::visible(shape_, span_, first + q);
      if (context_.has_fault(FaultKind::shifted_mask) && all.end - all.begin > 1) --all.end;
      w.seen[static_cast<std::size_t>(q)] = {std::max(all.begin, begin) - begin,
                                             std::min(all.end, end) - begin};
    }
  }

  void run_tile(std::int64_t sequence_head, std::int64_t query_tile, int thread) {
    const std::int64_t d = shape_.head_width;
    const std::int64_t dv = shape_.v_width();
    const std::int64_t sequence = sequence_head / shape_.heads;
    const std::int64_t head = sequence_head % shape_.heads;
    const std::int64_t kv_head = head / (shape_.heads / shape_.kv_heads);
    const TileShape tile = context_.schedule.tile;
    const std::int64_t first = query_tile * tile.m;
    const std::int64_t queries = std::min(tile.m, shape_.q_tokens - first);
    Worker& w = workers_[static_cast<std::size_t>(thread)];
    Port& port = context_.port(thread);

    TileArea where = area(sequence * shape_.q_tokens + first, queries, head, d);
    where.row_tile = sequence * query_tiles_ + query_tile;
    where.col_tile = head;
    where.height = m_.q.rows;
    w.queries.resize(queries, d);
    fetch(m_.q, m_.q_value, w.q, where, port, w.queries.data.data());

    const KeyRange range = keys_of(first, queries);
    const std::int64_t key_tiles = ceil_div(range.end - range.begin, tile.n);
    const std::int64_t splits = std::max<std::int64_t>(1, context_.schedule.splits);
    const std::int64_t tiles_per_split = ceil_div(key_tiles, splits);
    w.splits.resize(static_cast<std::size_t>(splits));
    for (OnlineSoftmax& s : w.splits) s.begin(queries, dv);
    for (std::int64_t i = 0; i < key_tiles; ++i) {
      const std::int64_t begin = range.begin + i * tile.n;
      const std::int64_t keys = std::min(tile.n, range.end - begin);
      const std::int64_t row = sequence * span_ + begin;
      w.keys.resize(static_cast<std::size_t>(keys * d));
      w.values.resize(static_cast<std::size_t>(keys * dv));
      const TileArea of_k = area(row, keys, kv_head, d);
      const TileArea of_v = area(row, keys, kv_head, dv);
      fetch(m_.k, m_.k_value, w.k, of_k, port, w.keys.data());
      fetch(m_.v, m_.v_value, w.v, of_v, port, w.values.data());
      dequantise(m_.k_scale, of_k, kv_head, port, w.keys.data());
      dequantise(m_.v_scale, of_v, kv_head, port, w.values.data());
      w.scores.resize(queries, keys);
      multiply({w.queries.data.data(), d, false}, {w.keys.data(), d, false}, queries, keys, d, 0.0F,
               w.scores.data.data(), keys);
      finish_scores(head, first, begin, port, w);
      see(first, begin, begin + keys, w);
      w.splits[static_cast<std::size_t>(i / tiles_per_split)].add(w.scores, w.values, w.seen);
    }
    for (std::size_t s = 1; s < w.splits.size(); ++s) w.splits[0].join(w.splits[s]);
    w.splits[0].finish(w.body.value(0), !context_.has_fault(FaultKind::unnormalised_softmax));
    if (m_.log_sum_exp >= 0) {
      Matrix& sums = w.body.value(m_.log_sum_exp);
      sums.resize(queries, 1);
      sums.data = w.splits[0].log_sum_exp();
      where.vector_begin = sequence_head * shape_.q_tokens + first;
    }
    where.columns = {head * dv, (head + 1) * dv};
    w.body.begin(where);
    w.body.run(port, {}, true);
  }

  const RunContext& context_;
  const AttentionMainloop& m_;
  const AttentionShape& shape_;
  std::int64_t span_;  // key rows of a sequence
  std::int64_t query_tiles_;
  ValueAnalysis body_layout_, q_layout_, k_layout_, v_layout_, store_layout_;
  PartialSums partials_;
  std::vector<Worker> workers_;
};

}  // namespace

void run_attention(const RunContext& context, const AttentionMainloop& mainloop) {
  AttentionRun(context, mainloop).run();
}

}  // namespace fuseline::executor
