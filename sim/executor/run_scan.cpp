#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/executor/blas.h"
#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

namespace {

// What one thread works with: the state of a head and the operands of a chunk, in fp32.
struct ScanWorker {
  TileInterpreter body;
  Matrix state{};        // [P, N]
  Matrix x{}, k{}, q{};  // [tokens, P], [tokens, N] each
  Matrix scores{};       // [tokens, tokens]
  Matrix from_state{};   // [tokens, P]
  std::vector<float> log_decay{};
  std::vector<float> rates{};
};

class ScanRun {
 public:
  ScanRun(const RunContext& context, const ScanMainloop& m)
      : context_(context),
        m_(m),
        shape_(m.shape),
        chunk_(std::min(m.shape.chunk, m.shape.tokens)),
        body_layout_(context.program.body, 0, m.x.cols, false) {
    for (int t = 0; t < context.workers.threads; ++t)
      workers_.push_back(
          {{context.program.body, body_layout_, partials_, context.fault_in(false)}});
  }

  // Heads of sequences side by side; the chunks of one come one after the other.
  void run() {
    const std::int64_t heads = shape_.batch * shape_.heads;
    const double operations = 4.0 * static_cast<double>(heads * shape_.tokens) *
                              static_cast<double>(shape_.head_width * shape_.state_width);
    parallel_for(context_.workers, Loop{heads, operations}, [&](std::int64_t index, int thread) {
      run_head(index / shape_.heads, index % shape_.heads, thread);
    });
    partials_.finish(context_.port(0));
  }

 private:
  void run_head(std::int64_t sequence, std::int64_t head, int thread) {
    ScanWorker& w = workers_[static_cast<std::size_t>(thread)];
    Port& port = context_.port(thread);
    const std::int64_t N = shape_.state_width;
    const std::int64_t first_row = (sequence * shape_.heads + head) * shape_.head_width;
    w.state.resize(shape_.head_width, N);
    for (std::int64_t p = 0; p < shape_.head_width; ++p) {
      if (m_.state)
        port.load(*m_.state, first_row + p, 0, N, w.state.row(p));
      else
        std::fill_n(w.state.row(p), N, 0.0F);
    }
    if (m_.rates) {
      w.rates.resize(static_cast<std::size_t>(m_.rates->cols));
      port.load(*m_.rates, head, 0, m_.rates->cols, w.rates.data());
    }
    for (std::int64_t first = 0; first < shape_.tokens; first += chunk_) {
      run_chunk(sequence, head, first, w, port);
      store_state(sequence, head, std::min(first + chunk_, shape_.tokens), w, port);
    }
  }

  // Behind the last of `tokens` tokens, where the state is kept there.
  void store_state(std::int64_t sequence, std::int64_t head, std::int64_t tokens,
                   const ScanWorker& w, Port& port) const {
    if (!m_.state_after) return;
    const std::int64_t each =
        m_.keeps_states() ? shape_.kept_tokens(m_.has_rates_of_columns()) : shape_.tokens;
    if (tokens % each != 0 && tokens != shape_.tokens) return;
    const std::int64_t states = ceil_div(shape_.tokens, each);
    const std::int64_t first_row =
        ((sequence * states + (tokens - 1) / each) * shape_.heads + head) * shape_.head_width;
    for (std::int64_t p = 0; p < shape_.head_width; ++p)
      port.store(*m_.state_after, first_row + p, 0, shape_.state_width, w.state.row(p));
  }

  void load_chunk(std::int64_t row, std::int64_t tokens, std::int64_t head, ScanWorker& w,
                  Port& port) const {
    const std::int64_t P = shape_.head_width;
    const std::int64_t N = shape_.state_width;
    const std::int64_t group = head / (shape_.heads / shape_.groups);
    w.x.resize(tokens, P);
    w.k.resize(tokens, N);
    w.q.resize(tokens, N);
    w.log_decay.resize(static_cast<std::size_t>(tokens));
    for (std::int64_t t = 0; t < tokens; ++t) {
      port.load(m_.x, row + t, head * P, P, w.x.row(t));
      port.load(m_.log_decay, row + t, head, 1, &w.log_decay[static_cast<std::size_t>(t)]);
      port.load(m_.k, row + t, group * N, N, w.k.row(t));
      port.load(m_.q, row + t, group * N, N, w.q.row(t));
    }
  }

  // decay[t] = exp of the log decays of tokens (from, t], summed outwards from `from`. Differences
  // of sums over the whole chunk would lose the digits that both have in common.
  void decays_behind(const ScanWorker& w, std::int64_t from, std::vector<float>& decay) const {
    const std::int64_t tokens = w.x.rows;
    decay.assign(static_cast<std::size_t>(tokens), 0.0F);
    float sum = 0;
    for (std::int64_t t = std::max<std::int64_t>(from, 0); t < tokens; ++t) {
      if (t > from) sum += w.log_decay[static_cast<std::size_t>(t)];
      decay[static_cast<std::size_t>(t)] = std::exp(sum);
    }
  }

  void run_chunk(std::int64_t sequence, std::int64_t head, std::int64_t first, ScanWorker& w,
                 Port& port) {
    const std::int64_t P = shape_.head_width;
    const std::int64_t N = shape_.state_width;
    const std::int64_t tokens = std::min(chunk_, shape_.tokens - first);
    const std::int64_t row = sequence * shape_.tokens + first;
    load_chunk(row, tokens, head, w, port);
    if (m_.has_rates_of_columns()) return finish_chunk(sequence, head, first, steps(w), w, port);
    if (m_.rates) multiply_by_step(w);

    // y = diag(decay since the chunk began) q S^T + (L ∘ q k^T) x
    std::vector<float> decay;
    w.from_state.resize(tokens, P);
    multiply({w.q.data.data(), N, false}, {w.state.data.data(), N, false}, tokens, P, N, 0.0F,
             w.from_state.data.data(), P);
    decays_behind(w, -1, decay);
    const float chunk_decay = decay.back();
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t p = 0; p < P; ++p)
        w.from_state.row(t)[p] *= decay[static_cast<std::size_t>(t)];
    w.scores.resize(tokens, tokens);
    multiply({w.q.data.data(), N, false}, {w.k.data.data(), N, false}, tokens, tokens, N, 0.0F,
             w.scores.data.data(), tokens);
    for (std::int64_t s = 0; s < tokens; ++s) {
      decays_behind(w, s, decay);
      for (std::int64_t t = 0; t < tokens; ++t)
        w.scores.row(t)[s] = t < s ? 0.0F : w.scores.row(t)[s] * decay[static_cast<std::size_t>(t)];
      for (std::int64_t n = 0; n < N; ++n) w.k.row(s)[n] *= decay.back();
    }
    Matrix& y = w.body.value(0);
    y.resize(tokens, P);
    std::copy(w.from_state.data.begin(), w.from_state.data.end(), y.data.begin());
    multiply({w.scores.data.data(), tokens, false}, {w.x.data.data(), P, true}, tokens, P, tokens,
             1.0F, y.data.data(), P);

    // S <- (decay of the chunk)·S + x^T k, where k has the decay behind its token by now
    multiply({w.x.data.data(), P, true}, {w.k.data.data(), N, true}, P, N, tokens, 0.0F,
             state_part(w).data.data(), N);
    for (std::size_t i = 0; i < w.state.data.size(); ++i)
      w.state.data[i] = chunk_decay * w.state.data[i] + state_part(w).data[i];

    finish_chunk(sequence, head, first, tokens, w, port);
  }

  // dt becomes the log decay of every token, and x the step's share of it.
  void multiply_by_step(ScanWorker& w) const {
    for (std::int64_t t = 0; t < w.x.rows; ++t) {
      float& dt = w.log_decay[static_cast<std::size_t>(t)];
      for (std::int64_t p = 0; p < w.x.cols; ++p) w.x.row(t)[p] *= dt;
      dt *= w.rates[0];
    }
  }

  // Token by token, where every column of the state has a decay of its own.
  std::int64_t steps(ScanWorker& w) const {
    const std::int64_t P = shape_.head_width;
    const std::int64_t N = shape_.state_width;
    Matrix& y = w.body.value(0);
    y.resize(w.x.rows, P);
    for (std::int64_t t = 0; t < w.x.rows; ++t) {
      const float dt = w.log_decay[static_cast<std::size_t>(t)];
      for (std::int64_t p = 0; p < P; ++p) {
        float* state = w.state.row(p);
        const float x = dt * w.x.row(t)[p];
        float sum = 0;
        for (std::int64_t n = 0; n < N; ++n) {
          const float decay = std::exp(dt * w.rates[static_cast<std::size_t>(n)]);
          state[n] = decay * state[n] + x * w.k.row(t)[n];
          sum += state[n] * w.q.row(t)[n];
        }
        y.row(t)[p] = sum;
      }
    }
    return w.x.rows;
  }

  // The rest of the program, on the chunk's rows and the head's columns.
  void finish_chunk(std::int64_t sequence, std::int64_t head, std::int64_t first,
                    std::int64_t tokens, ScanWorker& w, Port& port) {
    const std::int64_t P = shape_.head_width;
    const std::int64_t row = sequence * shape_.tokens + first;
    TileArea area;
    area.row_begin = row;
    area.row_end = row + tokens;
    area.columns = {head * P, (head + 1) * P};
    area.row_tile = sequence * ceil_div(shape_.tokens, chunk_) + first / chunk_;
    area.col_tile = head;
    area.height = m_.x.rows;
    w.body.begin(area);
    w.body.run(port, {}, true);
  }

  // The chunk's own part of the state takes the place of its part of the result, which is stored.
  Matrix& state_part(ScanWorker& w) const {
    w.from_state.resize(shape_.head_width, shape_.state_width);
    return w.from_state;
  }

  const RunContext& context_;
  const ScanMainloop& m_;
  const ScanShape& shape_;
  std::int64_t chunk_;
  ValueAnalysis body_layout_;
  PartialSums partials_;
  std::vector<ScanWorker> workers_;
};

}  // namespace

void run_scan(const RunContext& context, const ScanMainloop& mainloop) {
  ScanRun(context, mainloop).run();
}

}  // namespace fuseline::executor
