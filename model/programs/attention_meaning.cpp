#include "model/programs/mainloop_meanings.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/operators/support/heads.h"

namespace fuseline {

namespace {

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

}  // namespace

void attention_meaning(const AttentionMainloop& m, Meaning& exact) {
  Attention attention(m, exact);
  if (m.gradient)
    attention.gradient();
  else
    attention.forward();
}

}  // namespace fuseline
