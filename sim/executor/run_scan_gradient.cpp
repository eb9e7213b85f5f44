#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

namespace {

// What one thread works with: operands and results of a piece of one head's tokens, in fp32.
struct ScanGradientWorker {
  TileInterpreter body;
  Matrix x{}, dy{}, dx{};       // [tokens, P]
  Matrix k{}, q{}, dk{}, dq{};  // [tokens, N]
  Matrix states{};              // [tokens + 1, P·N], row t ahead of token t
  Matrix backward{};            // [P, N], what the loss says of the state
  std::vector<float> step{};    // of every token
  std::vector<float> d_step{};
  std::vector<float> rates{};
  std::vector<float> decay{};  // of the token at hand, N
};

// Tokens of one head of one sequence, between two kept states.
struct Piece {
  std::int64_t sequence, head, first, tokens;
};

// Heads that share keys come one after the other: they add to the same gradients in memory. Those
// of the rates are added up over the sequences at the end.
class ScanGradientRun {
 public:
  ScanGradientRun(const RunContext& context, const ScanMainloop& m)
      : context_(context),
        m_(m),
        gradient_(*m.gradient),
        shape_(m.shape),
        piece_(m.shape.kept_tokens(m.has_rates_of_columns())),
        body_layout_(context.program.body, 0, m.x.cols, false) {
    for (int t = 0; t < context.workers.threads; ++t)
      workers_.push_back(
          {{context.program.body, body_layout_, partials_, context.fault_in(false)}});
    if (m.rates)
      d_rates_.resize(static_cast<std::size_t>(shape_.batch * shape_.heads * m.rates->cols));
  }

  void run() {
    const std::int64_t groups = shape_.batch * shape_.groups;
    const double operations = 14.0 *
                              static_cast<double>(shape_.batch * shape_.heads * shape_.tokens) *
                              static_cast<double>(shape_.head_width * shape_.state_width);
    parallel_for(context_.workers, Loop{groups, operations}, [&](std::int64_t index, int thread) {
      const std::int64_t share = shape_.heads / shape_.groups;
      const std::int64_t group = index % shape_.groups;
      for (std::int64_t i = 0; i < share; ++i)
        run_head(index / shape_.groups, group * share + i, thread);
    });
    if (gradient_.d_rates) store_rates(context_.port(0));
    partials_.finish(context_.port(0));
  }

 private:
  [[nodiscard]] std::int64_t first_of_group(std::int64_t head) const {
    return head % (shape_.heads / shape_.groups);
  }
  [[nodiscard]] std::int64_t columns_of_group(std::int64_t head) const {
    return head / (shape_.heads / shape_.groups) * shape_.state_width;
  }

  void run_head(std::int64_t sequence, std::int64_t head, int thread) {
    ScanGradientWorker& w = workers_[static_cast<std::size_t>(thread)];
    Port& port = context_.port(thread);
    w.backward.resize(shape_.head_width, shape_.state_width);
    std::fill(w.backward.data.begin(), w.backward.data.end(), 0.0F);
    w.decay.resize(static_cast<std::size_t>(shape_.state_width));
    if (m_.rates) {
      w.rates.resize(static_cast<std::size_t>(m_.rates->cols));
      port.load(*m_.rates, head, 0, m_.rates->cols, w.rates.data());
    }
    for (std::int64_t at = ceil_div(shape_.tokens, piece_); at-- > 0;) {
      const Piece piece{sequence, head, at * piece_, std::min(piece_, shape_.tokens - at * piece_)};
      load(piece, w, port);
      states_again(piece, w);
      for (std::int64_t t = piece.tokens; t-- > 0;) back(piece, t, w);
      store(piece, w, port);
    }
  }

  void load(const Piece& piece, ScanGradientWorker& w, Port& port) const {
    const std::int64_t P = shape_.head_width;
    const std::int64_t N = shape_.state_width;
    const std::int64_t group = columns_of_group(piece.head);
    for (Matrix* m : {&w.x, &w.dy, &w.dx}) m->resize(piece.tokens, P);
    for (Matrix* m : {&w.k, &w.q, &w.dk, &w.dq}) m->resize(piece.tokens, N);
    w.step.resize(static_cast<std::size_t>(piece.tokens));
    w.d_step.assign(static_cast<std::size_t>(piece.tokens), 0.0F);
    for (Matrix* m : {&w.dx, &w.dk, &w.dq}) std::fill(m->data.begin(), m->data.end(), 0.0F);
    for (std::int64_t t = 0; t < piece.tokens; ++t) {
      const std::int64_t row = piece.sequence * shape_.tokens + piece.first + t;
      port.load(m_.x, row, piece.head * P, P, w.x.row(t));
      port.load(gradient_.dy, row, piece.head * P, P, w.dy.row(t));
      port.load(m_.log_decay, row, piece.head, 1, &w.step[static_cast<std::size_t>(t)]);
      port.load(m_.k, row, group, N, w.k.row(t));
      port.load(m_.q, row, group, N, w.q.row(t));
    }
    w.states.resize(piece.tokens + 1, P * N);
    std::fill_n(w.states.row(0), P * N, 0.0F);
    if (piece.first == 0) return;
    // The state behind the piece before this one.
    const std::int64_t kept = ceil_div(shape_.tokens, piece_) - 1;
    const std::int64_t from =
        ((piece.sequence * kept + piece.first / piece_ - 1) * shape_.heads + piece.head) * P;
    for (std::int64_t p = 0; p < P; ++p)
      port.load(*gradient_.states, from + p, 0, N, w.states.row(0) + p * N);
  }

  // The decay of every column of the state at token t.
  void decays(std::int64_t t, ScanGradientWorker& w) const {
    const float step = w.step[static_cast<std::size_t>(t)];
    for (std::size_t n = 0; n < w.decay.size(); ++n)
      w.decay[n] = std::exp(step * w.rates[n % w.rates.size()]);
  }

  void states_again(const Piece& piece, ScanGradientWorker& w) const {
    const std::int64_t N = shape_.state_width;
    for (std::int64_t t = 0; t < piece.tokens; ++t) {
      decays(t, w);
      for (std::int64_t p = 0; p < shape_.head_width; ++p) {
        const float* before = w.states.row(t) + p * N;
        float* after = w.states.row(t + 1) + p * N;
        const float x = w.step[static_cast<std::size_t>(t)] * w.x.row(t)[p];
        for (std::int64_t n = 0; n < N; ++n)
          after[n] = w.decay[static_cast<std::size_t>(n)] * before[n] + x * w.k.row(t)[n];
      }
    }
  }

  // Token t, with what all later ones have left in `backward`.
  void back(const Piece& piece, std::int64_t t, ScanGradientWorker& w) {
    const std::int64_t N = shape_.state_width;
    const float step = w.step[static_cast<std::size_t>(t)];
    float* d_rates =
        d_rates_.data() + (piece.sequence * shape_.heads + piece.head) * std::ssize(w.rates);
    decays(t, w);
    float& d_step = w.d_step[static_cast<std::size_t>(t)];
    for (std::int64_t p = 0; p < shape_.head_width; ++p) {
      float* g = w.backward.row(p);
      const float* before = w.states.row(t) + p * N;
      const float* after = w.states.row(t + 1) + p * N;
      const float dy = w.dy.row(t)[p];
      const float x = w.x.row(t)[p];
      float of_x = 0;      // of step·x
      float of_decay = 0;  // of the step, by the decays
      for (std::int64_t n = 0; n < N; ++n) {
        const std::size_t rate = static_cast<std::size_t>(n) % w.rates.size();
        const float decay = w.decay[static_cast<std::size_t>(n)];
        g[n] += dy * w.q.row(t)[n];
        w.dq.row(t)[n] += dy * after[n];
        w.dk.row(t)[n] += g[n] * (step * x);
        of_x += g[n] * w.k.row(t)[n];
        g[n] *= decay;
        const float log_decay = g[n] * before[n];
        of_decay += log_decay * w.rates[rate];
        d_rates[rate] += log_decay * step;
      }
      w.dx.row(t)[p] = step * of_x;
      d_step += x * of_x + of_decay;
    }
  }

  // The rest of the program runs on the chunks of the piece.
  void store(const Piece& piece, ScanGradientWorker& w, Port& port) const {
    const std::int64_t P = shape_.head_width;
    const std::int64_t row = piece.sequence * shape_.tokens + piece.first;
    for (std::int64_t t = 0; t < piece.tokens; ++t) {
      port.store(gradient_.d_decay, row + t, piece.head, 1, &w.d_step[static_cast<std::size_t>(t)]);
      add(gradient_.dk, row + t, piece.head, w.dk.row(t), port);
      add(gradient_.dq, row + t, piece.head, w.dq.row(t), port);
    }
    const std::int64_t chunk = std::min(shape_.chunk, shape_.tokens);
    for (std::int64_t at = 0; at < piece.tokens; at += chunk) {
      TileArea area;
      area.row_begin = row + at;
      area.row_end = row + std::min(piece.tokens, at + chunk);
      area.columns = {piece.head * P, (piece.head + 1) * P};
      area.row_tile = piece.sequence * ceil_div(shape_.tokens, chunk) + (piece.first + at) / chunk;
      area.col_tile = piece.head;
      area.height = m_.x.rows;
      w.body.begin(area);
      Matrix& dx = w.body.value(0);
      dx.resize(area.rows(), P);
      std::copy_n(w.dx.row(at), area.rows() * P, dx.data.begin());
      w.body.run(port, {}, true);
    }
  }

  // The first head of a group stores, the others load what is there and add to it.
  void add(const Operand& to, std::int64_t row, std::int64_t head, float* values,
           Port& port) const {
    const std::int64_t N = shape_.state_width;
    const std::int64_t col = columns_of_group(head);
    if (first_of_group(head) > 0) {
      std::vector<float> there(static_cast<std::size_t>(N));
      port.load(to, row, col, N, there.data());
      for (std::int64_t n = 0; n < N; ++n) values[n] += there[static_cast<std::size_t>(n)];
    }
    port.store(to, row, col, N, values);
  }

  // Sequence by sequence, as heads add to keys.
  void store_rates(Port& port) const {
    const Operand& to = *gradient_.d_rates;
    std::vector<float> sum(static_cast<std::size_t>(to.cols));
    for (std::int64_t b = 0; b < shape_.batch; ++b)
      for (std::int64_t h = 0; h < shape_.heads; ++h) {
        const float* own = d_rates_.data() + (b * shape_.heads + h) * to.cols;
        if (b > 0)
          port.load(to, h, 0, to.cols, sum.data());
        else
          std::fill(sum.begin(), sum.end(), 0.0F);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
        port.store(to, h, 0, to.cols, sum.data());
      }
  }

  const RunContext& context_;
  const ScanMainloop& m_;
  const ScanGradient& gradient_;
  const ScanShape& shape_;
  std::int64_t piece_;  // tokens between two kept states
  ValueAnalysis body_layout_;
  PartialSums partials_;
  std::vector<ScanGradientWorker> workers_;
  std::vector<float> d_rates_;  // of every sequence, head and rate
};

}  // namespace

void run_scan_gradient(const RunContext& context, const ScanMainloop& mainloop) {
  ScanGradientRun(context, mainloop).run();
}

}  // namespace fuseline::executor
