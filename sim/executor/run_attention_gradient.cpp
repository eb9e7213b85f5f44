// Attention's gradient over key tiles. A thread block of the GPU takes one tile of keys of one key
// head (of one query head, where each leaves its own dK and dV) and goes over the query tiles that
// see it; the sums of dK and dV stay on chip, dQ is added to in memory. Here one thread takes all
// key tiles of a head in their order, so that sums do not depend on the threads.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "model/operators/support/heads.h"
#include "sim/executor/blas.h"
#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"
#include "sim/memory/visible_keys.h"

namespace fuseline::executor {

namespace {

// The primitives that the values reach, in order.
std::vector<Primitive> what_follows(const std::vector<Primitive>& body, std::set<Value> values) {
  std::vector<Primitive> result;
  for (const Primitive& p : body) {
    const std::vector<Value> in = p.uses();
    if (std::ranges::none_of(in, [&](Value v) { return values.contains(v); })) continue;
    for (const Value v : p.defines()) values.insert(v);
    result.push_back(p);
  }
  return result;
}

// What one thread works with.
struct GradientWorker {
  TileInterpreter of_queries, of_keys, of_values;  // the body, after dQ, after dK and after dV
  Matrix keys{}, values{};                         // [keys, d] and [keys, width of V]
  Matrix queries{}, dy{};                          // [queries, d] and [queries, width of V]
  Matrix log_sum_exp{}, delta{};                   // [queries, 1]
  Matrix probs{}, d_scores{};                      // [queries, keys]
  Matrix dq{};                                     // [heads that share the keys · T, d]
  std::vector<float> bias{};                       // [keys], of one query
};

class GradientRun {
 public:
  GradientRun(const RunContext& context, const AttentionMainloop& m)
      : context_(context),
        m_(m),
        gradient_(*m.gradient),
        shape_(m.shape),
        share_(shape_.heads / shape_.kv_heads),
        owners_(gradient_.per_query_head ? shape_.heads : shape_.kv_heads),
        after_dq_(what_follows(context.program.body, {0})),
        after_dk_(what_follows(context.program.body, {gradient_.dk})),
        after_dv_(what_follows(context.program.body, {gradient_.dv})),
        dq_layout_(after_dq_, 0, m.q.cols, false),
        dk_layout_(layout(after_dk_, gradient_.dk, owners_ * shape_.head_width)),
        dv_layout_(layout(after_dv_, gradient_.dv, owners_ * shape_.v_width())) {
    FUSELINE_ASSERT(
        shape_.heads % shape_.kv_heads == 0 && m.k.rows == shape_.batch * shape_.kv_tokens,
        context.program.name);
    for (int t = 0; t < context.workers.threads; ++t)
      workers_.push_back({{after_dq_, dq_layout_, partials_},
                          {after_dk_, dk_layout_, partials_},
                          {after_dv_, dv_layout_, partials_}});
  }

  void run() {
    const double pairs = static_cast<double>(shape_.batch * shape_.heads * shape_.q_tokens) *
                         static_cast<double>(shape_.kv_tokens);
    const Loop loop{shape_.batch * owners_, 10 * pairs * static_cast<double>(shape_.head_width)};
    parallel_for(context_.workers, loop, [&](std::int64_t index, int thread) {
      run_head(index / owners_, index % owners_, thread);
    });
  }

 private:
  // Of what follows one result, `width` columns of all heads.
  static ValueAnalysis layout(const std::vector<Primitive>& body, Value result,
                              std::int64_t width) {
    const std::vector<MainloopResult> made{{result, Form::tile, width}};
    return {body, result, width, false, made};
  }

  // Rows [begin, begin + count) of one head, `width` columns, of an operand.
  static void fetch(const Operand& operand, std::int64_t begin, std::int64_t count,
                    std::int64_t head, std::int64_t width, Port& port, Matrix& to) {
    to.resize(count, width);
    for (std::int64_t r = 0; r < count; ++r)
      port.load(operand, begin + r, head * width, width, to.row(r));
  }
  static void clear(Matrix& sum, std::int64_t rows, std::int64_t cols) {
    sum.resize(rows, cols);
    std::fill(sum.data.begin(), sum.data.end(), 0.0F);
  }
  static void fetch_vector(const Operand& operand, std::int64_t begin, std::int64_t count,
                           Port& port, Matrix& to) {
    to.resize(count, 1);
    for (std::int64_t r = 0; r < count; ++r) port.load(operand, begin + r, 0, 1, to.row(r));
  }

  // Key tiles of one sequence and key (or query) head.
  void run_head(std::int64_t sequence, std::int64_t owner, int thread) {
    const std::int64_t T = shape_.q_tokens;
    const std::int64_t heads = gradient_.per_query_head ? 1 : share_;
    const std::int64_t kv_head = gradient_.per_query_head ? owner / share_ : owner;
    const TileShape tile = context_.schedule.tile;
    GradientWorker& w = workers_[static_cast<std::size_t>(thread)];
    Port& port = context_.port(thread);
    clear(w.dq, heads * T, shape_.head_width);

    for (std::int64_t begin = 0; begin < shape_.kv_tokens; begin += tile.n) {
      const std::int64_t keys = std::min(tile.n, shape_.kv_tokens - begin);
      const std::int64_t row = sequence * shape_.kv_tokens + begin;
      fetch(m_.k, row, keys, kv_head, shape_.head_width, port, w.keys);
      fetch(m_.v, row, keys, kv_head, shape_.v_width(), port, w.values);
      clear(w.of_keys.value(gradient_.dk), keys, shape_.head_width);
      clear(w.of_values.value(gradient_.dv), keys, shape_.v_width());
      for (std::int64_t i = 0; i < heads; ++i) {
        const std::int64_t head = gradient_.per_query_head ? owner : owner * share_ + i;
        const KeyRange seeing = query_tiles_that_see(shape_, begin, keys, tile.m);
        for (std::int64_t first = seeing.begin; first < seeing.end; first += tile.m)
          add_tile(sequence, head, first, begin, w.dq.row(i * T + first), w, port);
      }
      store(w.of_keys, row, keys, owner, shape_.head_width, m_.k.rows, port);
      store(w.of_values, row, keys, owner, shape_.v_width(), m_.k.rows, port);
    }
    for (std::int64_t i = 0; i < heads; ++i) {
      const std::int64_t head = gradient_.per_query_head ? owner : owner * share_ + i;
      for (std::int64_t first = 0; first < T; first += tile.m) {
        const std::int64_t queries = std::min(tile.m, T - first);
        Matrix& dq = w.of_queries.value(0);
        dq.resize(queries, shape_.head_width);
        std::copy_n(w.dq.row(i * T + first), dq.data.size(), dq.data.begin());
        store(w.of_queries, sequence * T + first, queries, head, shape_.head_width, m_.q.rows,
              port);
      }
    }
  }

  // What one query tile adds to dK and dV of the keys at hand, and they to its dQ.
  void add_tile(std::int64_t sequence, std::int64_t head, std::int64_t first,
                std::int64_t first_key, float* dq, GradientWorker& w, Port& port) {
    const std::int64_t d = shape_.head_width;
    const std::int64_t dv_width = shape_.v_width();
    const std::int64_t T = shape_.q_tokens;
    const std::int64_t queries = std::min(context_.schedule.tile.m, T - first);
    const std::int64_t keys = w.keys.rows;
    fetch(m_.q, sequence * T + first, queries, head, d, port, w.queries);
    fetch(gradient_.dy, sequence * T + first, queries, head, dv_width, port, w.dy);
    const std::int64_t vector = (sequence * shape_.heads + head) * T + first;
    fetch_vector(gradient_.log_sum_exp, vector, queries, port, w.log_sum_exp);
    fetch_vector(gradient_.delta, vector, queries, port, w.delta);

    w.probs.resize(queries, keys);
    w.d_scores.resize(queries, keys);
    multiply(plain(w.queries), plain(w.keys), queries, keys, d, 0.0F, w.probs.data.data(), keys);
    multiply(plain(w.dy), plain(w.values), queries, keys, dv_width, 0.0F, w.d_scores.data.data(),
             keys);
    const float scale = static_cast<float>(shape_.scale);
    const float cap = static_cast<float>(shape_.softcap);
    const bool stale = context_.has_fault(FaultKind::stale_delta);
    for (std::int64_t q = 0; q < queries; ++q) {
      const KeyRange seen = seen_by(first + q, first_key, keys);
      float* p = w.probs.row(q);
      float* ds = w.d_scores.row(q);
      const float lse = w.log_sum_exp.row(q)[0];
      const float delta = stale ? 0.0F : w.delta.row(q)[0];
      w.bias.assign(static_cast<std::size_t>(keys), 0.0F);
      if (m_.bias) port.load(*m_.bias, head * T + first + q, first_key, keys, w.bias.data());
      std::fill_n(p, seen.begin, 0.0F);
      std::fill_n(ds, seen.begin, 0.0F);
      for (std::int64_t k = seen.begin; k < seen.end; ++k) {
        float slope = 1;
        float score = scale * p[k];
        if (cap > 0) {
          const float part = std::tanh(score / cap);
          score = cap * part;
          slope = 1 - part * part;
        }
        p[k] = std::exp(score + w.bias[static_cast<std::size_t>(k)] - lse);
        ds[k] = scale * p[k] * (ds[k] - delta) * slope;
      }
      std::fill(p + seen.end, p + keys, 0.0F);
      std::fill(ds + seen.end, ds + keys, 0.0F);
    }
    Matrix& dk = w.of_keys.value(gradient_.dk);
    Matrix& dv = w.of_values.value(gradient_.dv);
    multiply(turned(w.probs), turned(w.dy), keys, dv_width, queries, 1.0F, dv.data.data(),
             dv_width);
    multiply(turned(w.d_scores), turned(w.queries), keys, d, queries, 1.0F, dk.data.data(), d);
    multiply(plain(w.d_scores), turned(w.keys), queries, d, keys, 1.0F, dq, d);
    count_dq(first, first_key, queries, port);
  }

  static BlasPanel<float> plain(const Matrix& m) { return {m.data.data(), m.cols, false}; }
  static BlasPanel<float> turned(const Matrix& m) { return {m.data.data(), m.cols, true}; }

  // Keys of the tile that one query sees, counted from the tile's first; begin <= end.
  [[nodiscard]] KeyRange seen_by(std::int64_t query, std::int64_t first_key,
                                 std::int64_t keys) const {
    reference::Seen all = reference::visible(shape_, shape_.kv_tokens, query);
    const std::int64_t begin = std::clamp<std::int64_t>(all.begin - first_key, 0, keys);
    return {begin, std::clamp(all.end - first_key, begin, keys)};
  }

  // dQ of a query tile is stored once below; the key tiles after the first that it sees add to it.
  void count_dq(std::int64_t first, std::int64_t first_key, std::int64_t queries,
                Port& port) const {
    const TileShape tile = context_.schedule.tile;
    const KeyRange keys = visible_keys(shape_, first, queries);
    if (first_key <= keys.begin / tile.n * tile.n) return;
    for (const Primitive& p : after_dq_) {
      if (p.uses() != std::vector<Value>{0}) continue;
      for (const Access& access : p.accesses()) {
        if (!access.store || access.reach != Reach::tile) continue;
        port.count_load(access.operand, queries * shape_.head_width);
        port.count_store(access.operand, queries * shape_.head_width);
      }
    }
  }

  // `height`: rows of all tiles of this kind.
  void store(TileInterpreter& interpreter, std::int64_t row, std::int64_t rows, std::int64_t head,
             std::int64_t width, std::int64_t height, Port& port) const {
    TileArea area;
    area.row_begin = row;
    area.row_end = row + rows;
    area.columns = {head * width, (head + 1) * width};
    area.row_tile = row / context_.schedule.tile.m;
    area.col_tile = head;
    area.height = height;
    interpreter.begin(area);
    interpreter.run(port, {}, true);
  }

  const RunContext& context_;
  const AttentionMainloop& m_;
  const AttentionGradient& gradient_;
  const AttentionShape& shape_;
  std::int64_t share_;   // query heads that share a key head
  std::int64_t owners_;  // heads of dK and dV
  std::vector<Primitive> after_dq_, after_dk_, after_dv_;
  ValueAnalysis dq_layout_, dk_layout_, dv_layout_;
  PartialSums partials_;
  std::vector<GradientWorker> workers_;
};

}  // namespace

void run_attention_gradient(const RunContext& context, const AttentionMainloop& mainloop) {
  GradientRun(context, mainloop).run();
}

}  // namespace fuseline::executor
