#include "model/programs/mainloop_meaning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "model/batch_corner.h"
#include "model/formats/stored_weight.h"
#include "model/operators/support/heads.h"

namespace fuseline {

namespace {

// A matrix of the text: an operand as it lies in memory, read whole.
ExactMatrix whole(const Operand& o, const Meaning& exact) {
  ExactMatrix m(o.rows, o.cols);
  for (std::int64_t r = 0; r < o.rows; ++r)
    for (std::int64_t c = 0; c < o.cols; ++c) m.at(r, c) = exact.read(o, r, c);
  return m;
}

// ---------------------------------------------------------------- products

// One product of a GEMM's batch, groups or depths.
struct Product {
  std::int64_t number = 0;       // of its matrix, by which scales are found
  Corner a, b;                   // of its matrices in the operands
  std::int64_t rows = 0, k = 0;  // of a and of the result; summed
  std::int64_t first_row = 0;    // of the result, in the index space
};

std::vector<Product> products_of(const GemmMainloop& m) {
  std::vector<Product> all;
  std::int64_t done = 0;  // rows of all groups so far, or parts of k
  for (std::size_t g = 0; g < m.groups.size(); ++g) {
    const auto number = static_cast<std::int64_t>(g);
    all.push_back(
        {number, {done, 0}, {number * (m.b_is_kn ? m.K : m.N), 0}, m.groups[g], m.K, done});
    done += m.groups[g];
  }
  for (std::size_t g = 0; g < m.depths.size(); ++g) {
    const auto number = static_cast<std::int64_t>(g);
    all.push_back({number, {done, 0}, {done, 0}, m.M, m.depths[g], number * m.M});
    done += m.depths[g];
  }
  if (!all.empty()) return all;
  for (std::int64_t p = 0; p < m.batch; ++p) {
    const auto corner = [&](const Operand& o, bool k_first, std::int64_t outer) {
      if (m.batch == 1) return Corner{};
      return corner_of(o, m.batch, p, k_first ? m.K : outer, k_first ? outer : m.K);
    };
    all.push_back({p, corner(m.a, m.a_is_km, m.M), corner(m.b, m.b_is_kn, m.N), m.M, m.K,
                   p / m.summed * m.M});
  }
  return all;
}

// [rows, k] of the first operand: what its codes are worth.
std::vector<double> rows_of_a(const GemmMainloop& m, const Product& p, const Meaning& exact) {
  std::vector<double> a(static_cast<std::size_t>(p.rows * p.k));
  for (std::int64_t r = 0; r < p.rows; ++r) {
    double* const row = a.data() + r * p.k;
    for (std::int64_t k = 0; k < p.k; ++k)
      row[k] = m.a_is_km ? exact.read(m.a, p.a.row + k, p.a.col + r)
                         : exact.read(m.a, p.a.row + r, p.a.col + k);
    if (!m.activation.quantised()) continue;
    std::vector<double> scale;
    for (std::int64_t c = 0; c < m.a_scale->cols; ++c)
      scale.push_back(exact.read(*m.a_scale, p.a.row + r, c));
    dequantise(m.activation, RowScales<double>{.scale = scale.data()}, 0, p.k, row);
  }
  return a;
}

// Row n of the second operand, k of them.
void row_of_b(const GemmMainloop& m, const Product& p, std::int64_t n, const Meaning& exact,
              double* row) {
  for (std::int64_t k = 0; k < p.k; ++k)
    row[k] = m.b_is_kn ? exact.read(m.b, p.b.row + k, p.b.col + n)
                       : exact.read(m.b, p.b.row + n, p.b.col + k);
  if (!m.weight.quantised()) return;
  const std::vector<ScaleTensor> beside = m.weight.beside(m.N, m.K);
  std::vector<std::vector<double>> numbers(beside.size());
  RowScales<double> scales;
  for (std::size_t i = 0; i < beside.size(); ++i) {
    const ScaleTensor& t = beside[i];
    const std::int64_t matrix = m.groups.empty() ? 0 : p.number;
    const std::int64_t at =
        t.kind == ScaleKind::tensor_scale ? 0 : matrix * t.rows + m.weight.scale_row(n);
    for (std::int64_t c = 0; c < t.cols; ++c)
      numbers[i].push_back(exact.read(m.beside_b[i], at, c));
    if (t.kind == ScaleKind::scale) scales.scale = numbers[i].data();
    if (t.kind == ScaleKind::zero_point) scales.zero_point = numbers[i].data();
    if (t.kind == ScaleKind::tensor_scale) scales.tensor_scale = numbers[i][0];
  }
  dequantise(m.weight, scales, 0, p.k, row);
}

void multiply(const GemmMainloop& m, Meaning& exact) {
  ExactMatrix y(exact.rows(), m.N);
  // Some columns at a time, so that b is read once and their sums are beside each other.
  constexpr std::int64_t kBeside = 8;
  for (const Product& p : products_of(m)) {
    const std::vector<double> a = rows_of_a(m, p, exact);
    std::vector<double> row(static_cast<std::size_t>(p.k));
    std::vector<double> b(static_cast<std::size_t>(p.k * kBeside));  // [k, kBeside]
    for (std::int64_t n = 0; n < m.N; n += kBeside) {
      const std::int64_t cols = std::min(kBeside, m.N - n);
      for (std::int64_t c = 0; c < cols; ++c) {
        row_of_b(m, p, n + c, exact, row.data());
        for (std::int64_t k = 0; k < p.k; ++k)
          b[static_cast<std::size_t>(k * kBeside + c)] = row[static_cast<std::size_t>(k)];
      }
      for (std::int64_t r = 0; r < p.rows; ++r) {
        double sums[kBeside] = {};
        const double* of_a = a.data() + r * p.k;
        for (std::int64_t k = 0; k < p.k; ++k)
          for (std::int64_t c = 0; c < cols; ++c)
            sums[c] += of_a[k] * b[static_cast<std::size_t>(k * kBeside + c)];
        for (std::int64_t c = 0; c < cols; ++c) y.at(p.first_row + r, n + c) += sums[c];
      }
    }
  }
  exact.make(0, std::move(y));
  exact.round(0, static_cast<double>(m.K), -1);
}

// --------------------------------------------------------------- attention

class Attention {
 public:
  Attention(const AttentionMainloop& m, Meaning& exact)
      : m_(m),
        shape_(m.shape),
        exact_(exact),
        q_(operand(m.q, m.q_value)),
        k_(worth(operand(m.k, m.k_value), m.k_scale, m.shape.head_width)),
        v_(worth(operand(m.v, m.v_value), m.v_scale, m.shape.v_width())),
        span_(k_.rows / m.shape.batch) {}

  void forward() {
    const std::int64_t dv = shape_.v_width();
    ExactMatrix y(shape_.batch * shape_.q_tokens, shape_.heads * dv);
    ExactMatrix sums(shape_.batch * shape_.heads * shape_.q_tokens, 1);
    reference::for_each_query(shape_, [&](auto b, auto h, auto t, auto row) {
      const reference::Seen seen = reference::visible(shape_, span_, t);
      const std::vector<double> scores = scores_of(b, h, t, seen, nullptr);
      const double top = *std::ranges::max_element(scores);
      double sum = 0;
      for (const double s : scores) sum += std::exp(s - top);
      sums.at(row, 0) = top + std::log(sum);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const double p = std::exp(scores[i] - top) / sum;
        const std::int64_t key = b * span_ + seen.begin + static_cast<std::int64_t>(i);
        for (std::int64_t c = 0; c < dv; ++c)
          y.at(b * shape_.q_tokens + t, h * dv + c) +=
              p * v_.at(key, reference::kv_head(shape_, h) * dv + c);
      }
    });
    result(0, std::move(y), span_);
    if (m_.log_sum_exp >= 0) result(m_.log_sum_exp, std::move(sums), span_);
  }

  void gradient() {
    const AttentionGradient& g = *m_.gradient;
    const std::int64_t d = shape_.head_width, dv = shape_.v_width();
    const std::int64_t owners = g.per_query_head ? shape_.heads : shape_.kv_heads;
    const ExactMatrix dy = whole(g.dy, exact_);
    ExactMatrix dq(q_.rows, q_.cols), dk(k_.rows, owners * d), d_v(v_.rows, owners * dv);
    reference::for_each_query(shape_, [&](auto b, auto h, auto t, auto row) {
      const reference::Seen seen = reference::visible(shape_, span_, t);
      std::vector<double> slopes;
      const std::vector<double> scores = scores_of(b, h, t, seen, &slopes);
      const double log_sum_exp = exact_.read(g.log_sum_exp, row, 0);
      const double delta = exact_.read(g.delta, row, 0);
      const std::int64_t query = b * shape_.q_tokens + t;
      const std::int64_t kv = reference::kv_head(shape_, h), owner = g.per_query_head ? h : kv;
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::int64_t key = b * span_ + seen.begin + static_cast<std::int64_t>(i);
        const double p = std::exp(scores[i] - log_sum_exp);
        double dp = 0;
        for (std::int64_t c = 0; c < dv; ++c)
          dp += dy.at(query, h * dv + c) * v_.at(key, kv * dv + c);
        const double ds = shape_.scale * p * (dp - delta) * slopes[i];
        for (std::int64_t c = 0; c < d; ++c) {
          dq.at(query, h * d + c) += ds * k_.at(key, kv * d + c);
          dk.at(key, owner * d + c) += ds * q_.at(query, h * d + c);
        }
        for (std::int64_t c = 0; c < dv; ++c)
          d_v.at(key, owner * dv + c) += p * dy.at(query, h * dv + c);
      }
    });
    const std::int64_t queries = shape_.q_tokens * (g.per_query_head ? 1 : share());
    result(0, std::move(dq), span_);
    result(g.dk, std::move(dk), queries);
    result(g.dv, std::move(d_v), queries);
  }

 private:
  [[nodiscard]] std::int64_t share() const { return shape_.heads / shape_.kv_heads; }

  // The operand, or the value that the prologue made in its place.
  [[nodiscard]] ExactMatrix operand(const Operand& o, Value made) const {
    if (made < 0) return whole(o, exact_);
    const ExactMatrix& value = exact_.value(made);
    if (value.rows != o.rows || value.cols != o.cols)
      throw MissingError(
          "a prologue that loads keys of other rows than the queries' states no meaning in fp64 "
          "yet");
    return value;
  }

  // Codes of keys or values, times the scale of each row and head.
  [[nodiscard]] ExactMatrix worth(ExactMatrix m, const std::optional<Operand>& scale,
                                  std::int64_t width) const {
    if (!scale) return m;
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.cols; ++c) m.at(r, c) *= exact_.read(*scale, r, c / width);
    return m;
  }

  // Of the keys that the query sees: capped and biased. `slopes`: what the cap's derivative is.
  std::vector<double> scores_of(std::int64_t b, std::int64_t h, std::int64_t t,
                                const reference::Seen& seen, std::vector<double>* slopes) const {
    const std::int64_t d = shape_.head_width, kv = reference::kv_head(shape_, h);
    std::vector<double> scores;
    for (std::int64_t s = seen.begin; s < seen.end; ++s) {
      double score = 0, slope = 1;
      for (std::int64_t c = 0; c < d; ++c)
        score += q_.at(b * shape_.q_tokens + t, h * d + c) * k_.at(b * span_ + s, kv * d + c);
      score *= shape_.scale;
      if (shape_.softcap > 0) {
        const double part = std::tanh(score / shape_.softcap);
        score = shape_.softcap * part;
        slope = 1 - part * part;
      }
      if (m_.bias) score += exact_.read(*m_.bias, h * shape_.q_tokens + t, s);
      scores.push_back(score);
      if (slopes != nullptr) slopes->push_back(slope);
    }
    return scores;
  }

  void result(Value v, ExactMatrix m, std::int64_t terms) {
    exact_.make(v, std::move(m));
    exact_.round(v, static_cast<double>(terms), -1);
  }

  const AttentionMainloop& m_;
  const AttentionShape& shape_;
  Meaning& exact_;
  ExactMatrix q_, k_, v_;
  std::int64_t span_;  // key rows of a sequence
};

// ------------------------------------------------------------------- scans

class Scan {
 public:
  Scan(const ScanMainloop& m, Meaning& exact)
      : m_(m),
        shape_(m.shape),
        exact_(exact),
        x_(whole(m.x, exact)),
        step_(whole(m.log_decay, exact)),
        k_(whole(m.k, exact)),
        q_(whole(m.q, exact)) {}

  void forward() {
    ExactMatrix y(x_.rows, x_.cols);
    for_each_head([&](std::int64_t b, std::int64_t h) {
      std::vector<double> state(static_cast<std::size_t>(P() * N()));
      if (m_.state) read_state(*m_.state, (b * shape_.heads + h) * P(), state.data());
      for (std::int64_t t = 0; t < shape_.tokens; ++t) {
        const std::int64_t row = b * shape_.tokens + t;
        step_state(row, h, state.data(), state.data());
        for (std::int64_t p = 0; p < P(); ++p)
          for (std::int64_t n = 0; n < N(); ++n)
            y.at(row, h * P() + p) +=
                state[static_cast<std::size_t>(p * N() + n)] * q_.at(row, group(h) + n);
        keep(b, h, t + 1, state);
      }
    });
    finish(0, std::move(y));
  }

  void gradient() {
    const ScanGradient& g = *m_.gradient;
    const ExactMatrix dy = whole(g.dy, exact_);
    ExactMatrix dx(x_.rows, x_.cols), d_step(step_.rows, step_.cols), dk(k_.rows, k_.cols),
        dq(q_.rows, q_.cols);
    ExactMatrix d_rates(m_.rates ? m_.rates->rows : 1, m_.rates ? m_.rates->cols : 1);
    const std::int64_t kept = shape_.kept_tokens(m_.has_rates_of_columns());
    const auto numbers = static_cast<std::size_t>(P() * N());
    for_each_head([&](std::int64_t b, std::int64_t h) {
      // states[t] is the one ahead of token t; those that pieces begin with are read.
      std::vector<std::vector<double>> states(static_cast<std::size_t>(shape_.tokens + 1),
                                              std::vector<double>(numbers));
      for (std::int64_t t = 0; t < shape_.tokens; ++t) {
        const auto at = static_cast<std::size_t>(t);
        if (t > 0 && t % kept == 0)
          read_state(
              *g.states,
              ((b * (ceil_div(shape_.tokens, kept) - 1) + t / kept - 1) * shape_.heads + h) * P(),
              states[at].data());
        step_state(b * shape_.tokens + t, h, states[at].data(), states[at + 1].data());
      }
      std::vector<double> backward(numbers);
      for (std::int64_t t = shape_.tokens; t-- > 0;) {
        const std::int64_t row = b * shape_.tokens + t;
        const double dt = share(row, h);
        for (std::int64_t p = 0; p < P(); ++p)
          for (std::int64_t n = 0; n < N(); ++n) {
            const auto i = static_cast<std::size_t>(p * N() + n);
            double& back = backward[i];
            const double x = x_.at(row, h * P() + p), of_y = dy.at(row, h * P() + p);
            back += of_y * q_.at(row, group(h) + n);
            dq.at(row, group(h) + n) += of_y * states[static_cast<std::size_t>(t + 1)][i];
            dk.at(row, group(h) + n) += back * dt * x;
            const double fresh = back * k_.at(row, group(h) + n);  // of dt·x
            dx.at(row, h * P() + p) += dt * fresh;
            back *= std::exp(log_decay(row, h, n));
            const double decayed = back * states[static_cast<std::size_t>(t)][i];
            d_step.at(row, h) += m_.rates ? x * fresh + rate(h, n) * decayed : decayed;
            if (m_.rates) d_rates.at(h, n % d_rates.cols) += dt * decayed;
          }
      }
    });
    finish(0, std::move(dx));
    store(g.d_decay, d_step);
    store(g.dk, dk);
    store(g.dq, dq);
    if (g.d_rates) store(*g.d_rates, d_rates);
  }

 private:
  [[nodiscard]] std::int64_t P() const { return shape_.head_width; }
  [[nodiscard]] std::int64_t N() const { return shape_.state_width; }
  [[nodiscard]] std::int64_t group(std::int64_t h) const {
    return h / (shape_.heads / shape_.groups) * N();
  }
  [[nodiscard]] double rate(std::int64_t h, std::int64_t n) const {
    return exact_.read(*m_.rates, h, n % m_.rates->cols);
  }
  [[nodiscard]] double log_decay(std::int64_t row, std::int64_t h, std::int64_t n) const {
    return m_.rates ? step_.at(row, h) * rate(h, n) : step_.at(row, h);
  }
  // The factor of x.
  [[nodiscard]] double share(std::int64_t row, std::int64_t h) const {
    return m_.rates ? step_.at(row, h) : 1.0;
  }

  template <class F>
  void for_each_head(F f) const {
    for (std::int64_t b = 0; b < shape_.batch; ++b)
      for (std::int64_t h = 0; h < shape_.heads; ++h) f(b, h);
  }

  // S <- decay·S + share·x k^T.
  void step_state(std::int64_t row, std::int64_t h, const double* before, double* after) const {
    for (std::int64_t n = 0; n < N(); ++n) {
      const double decay = std::exp(log_decay(row, h, n));
      for (std::int64_t p = 0; p < P(); ++p)
        after[p * N() + n] = decay * before[p * N() + n] +
                             share(row, h) * x_.at(row, h * P() + p) * k_.at(row, group(h) + n);
    }
  }

  void read_state(const Operand& from, std::int64_t first_row, double* state) const {
    for (std::int64_t p = 0; p < P(); ++p)
      for (std::int64_t n = 0; n < N(); ++n)
        state[p * N() + n] = exact_.read(from, first_row + p, n);
  }

  // Behind so many tokens of a sequence, where the state is kept there.
  void keep(std::int64_t b, std::int64_t h, std::int64_t tokens,
            const std::vector<double>& state) const {
    if (!m_.state_after) return;
    const std::int64_t each =
        m_.keeps_states() ? shape_.kept_tokens(m_.has_rates_of_columns()) : shape_.tokens;
    if (tokens % each != 0 && tokens != shape_.tokens) return;
    const std::int64_t piece = b * ceil_div(shape_.tokens, each) + (tokens - 1) / each;
    for (std::int64_t p = 0; p < P(); ++p)
      for (std::int64_t n = 0; n < N(); ++n)
        exact_.write(*m_.state_after, (piece * shape_.heads + h) * P() + p, n,
                     state[static_cast<std::size_t>(p * N() + n)]);
  }

  void store(const Operand& to, const ExactMatrix& m) const {
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.cols; ++c) exact_.write(to, r, c, m.at(r, c));
  }

  void finish(Value v, ExactMatrix m) const {
    exact_.make(v, std::move(m));
    exact_.round(v, static_cast<double>(shape_.tokens), -1);
  }

  const ScanMainloop& m_;
  const ScanShape& shape_;
  Meaning& exact_;
  ExactMatrix x_, step_, k_, q_;
};

struct RunMainloop {
  Meaning& exact;

  void operator()(const GemmMainloop& m) const { multiply(m, exact); }
  void operator()(const AttentionMainloop& m) const {
    Attention attention(m, exact);
    if (m.gradient)
      attention.gradient();
    else
      attention.forward();
  }
  void operator()(const ScanMainloop& m) const {
    Scan scan(m, exact);
    if (m.gradient)
      scan.gradient();
    else
      scan.forward();
  }
  void operator()(const StreamMainloop&) const {}
  void operator()(const RowMainloop&) const {}
};

}  // namespace

void run_mainloop_meaning(const Program& program, Meaning& exact) {
  std::visit(RunMainloop{exact}, program.mainloop);
}

}  // namespace fuseline
