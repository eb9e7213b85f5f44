#include "model/programs/mainloop_meanings.h"

#include <cmath>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

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

}  // namespace

void scan_meaning(const ScanMainloop& m, Meaning& exact) {
  Scan scan(m, exact);
  if (m.gradient)
    scan.gradient();
  else
    scan.forward();
}

}  // namespace fuseline
