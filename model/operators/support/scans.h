// What scans have in common: how a block's text calls one, and the recurrence in fp64.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "model/operators/attributes.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/view.h"

namespace fuseline {

// From heads, groups and chunk of the call, and the widths of its operands x, decay, k, q.
ScanShape scan_of_call(OperatorCall& call);

// A result sums N products of the state, each of which sums what all tokens so far have left.
std::int64_t scan_terms(const Graph& graph, const Op& op);

namespace reference {

// What a token does to column n of its head's state: the decay, and the factor of x.
struct TokenOfScan {
  double log_decay = 0;
  double share = 1;
};

// Operands x, decay, k, q; the state that it begins with is operand `state`, where there is one,
// and the state behind the last token, or behind each of the pieces that the gradient begins with,
// is the second result. `token(t, h, n)` gives a TokenOfScan.
template <class Token>
void scan_tokens(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out,
                 std::size_t state, Token token) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> k = read(g, in, op.reads[2]);
  const View<const double> q = read(g, in, op.reads[3]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<ScanShape>();
  const std::int64_t P = a.head_width;
  const std::int64_t N = a.state_width;
  const bool pieces = op.writes.size() > 1 && op.writes[1].rows > a.batch * a.heads * P;
  const bool rates_of_columns = state > 4 && op.reads[4].cols > 1;  // else operand 4 is a state
  const std::int64_t kept = pieces ? a.kept_tokens(rates_of_columns) : a.tokens;
  std::vector<double> held(static_cast<std::size_t>(P * N));
  std::vector<double> decay(static_cast<std::size_t>(N)), share(decay);  // of one token
  const auto S = [&](std::int64_t p, std::int64_t n) -> double& {
    return held[static_cast<std::size_t>(p * N + n)];
  };
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t group = h / (a.heads / a.groups) * N;
      const std::int64_t first = (b * a.heads + h) * P;  // row of the states
      for (std::int64_t p = 0; p < P; ++p)
        for (std::int64_t n = 0; n < N; ++n)
          S(p, n) = op.reads.size() > state ? read(g, in, op.reads[state])(first + p, n) : 0.0;
      for (std::int64_t t = b * a.tokens; t < (b + 1) * a.tokens; ++t) {
        for (std::int64_t n = 0; n < N; ++n) {
          const TokenOfScan now = token(t, h, n);
          const auto at = static_cast<std::size_t>(n);
          decay[at] = std::exp(now.log_decay);
          share[at] = now.share;
        }
        for (std::int64_t p = 0; p < P; ++p) {
          double sum = 0;
          for (std::int64_t n = 0; n < N; ++n) {
            const auto at = static_cast<std::size_t>(n);
            S(p, n) = decay[at] * S(p, n) + share[at] * x(t, h * P + p) * k(t, group + n);
            sum += S(p, n) * q(t, group + n);
          }
          y(t, h * P + p) = sum;
        }
        const std::int64_t done = t + 1 - b * a.tokens;
        if (op.writes.size() < 2 || (done % kept != 0 && done != a.tokens)) continue;
        const View<double> after = write(g, out, op.writes[1]);
        const std::int64_t row =
            ((b * ceil_div(a.tokens, kept) + (done - 1) / kept) * a.heads + h) * P;
        for (std::int64_t p = 0; p < P; ++p)
          for (std::int64_t n = 0; n < N; ++n) after(row + p, n) = S(p, n);
      }
    }
}

}  // namespace reference

}  // namespace fuseline
