#include "model/operators/support/scan_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/backward_adjoint.h"
#include "model/operators/all_operators.h"
#include "model/operators/attributes.h"
#include "model/operators/support/heads.h"
#include "model/program.h"

namespace fuseline {

std::int64_t scan_gradient_terms(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<ScanShape>();
  return a.batch * a.tokens * a.state_width * std::max(a.head_width, a.heads / a.groups);
}

namespace {

// All but the last kept state of every sequence: those that begin a piece of its tokens.
Operand kept_states(Adjoint& a, const Op& op, const ScanShape& s) {
  const std::int64_t kept = s.kept_states(op.reads[4].cols > 1);
  const std::int64_t rows = s.heads * s.head_width;
  Operand states = a.also_write(op.name + "_states", "[B·C·H·P, N]", Dtype::fp32,
                                s.batch * kept * rows, s.state_width);
  if (s.batch > 1) states.at = {0, (kept - 1) * rows, kept * rows};
  states.rows = s.batch * (kept - 1) * rows;
  return states;
}

// A gradient in bf16 that is summed up in fp32 first.
struct Rounded {
  std::size_t read;
  Operand sum;
};

}  // namespace

void selective_scan_gradient(Adjoint& a) {
  constexpr std::array<const char*, 5> kNames{"dx", "ddt", "dk", "dq", "drates"};
  const Op op = a.op();
  const auto s = op.attributes.as<ScanShape>();
  std::vector<Operand> reads{a.dy()};
  for (std::size_t i = 0; i < kNames.size(); ++i) reads.push_back(a.forward_value(op.reads[i]));
  if (s.kept_states(op.reads[4].cols > 1) > 1) reads.push_back(kept_states(a, op, s));

  std::vector<Rounded> rounded;
  std::vector<Operand> writes;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Operand& read = op.reads[i];
    const Dtype type = i == 0 ? a.type_of(read) : Dtype::fp32;  // heads add to the others
    if (a.wants(i) && type == a.type_of(read)) {
      writes.push_back(a.target(i));
      continue;
    }
    writes.push_back(
        a.make(std::string(kNames[i]) + "_" + op.name, "", type, read.rows, read.cols));
    if (a.wants(i)) rounded.push_back({i, writes.back()});
  }
  a.emit("d_" + op.name, operators::selective_scan_backward, std::move(reads), std::move(writes),
         s);
  for (const Rounded& r : rounded)
    a.emit("cast_" + std::string(kNames[r.read]) + "_" + op.name, operators::cast, {r.sum},
           {a.target(r.read)});
}

namespace reference {

namespace {

// The states of one head of one sequence, behind every token: P x N each.
class States {
 public:
  States(std::int64_t tokens, std::int64_t numbers)
      : numbers_(numbers), held_(static_cast<std::size_t>((tokens + 1) * numbers)) {}
  // Ahead of token t.
  double& at(std::int64_t t, std::int64_t i) {
    return held_[static_cast<std::size_t>(t * numbers_ + i)];
  }

 private:
  std::int64_t numbers_;
  std::vector<double> held_;
};

}  // namespace

void scan_gradient(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> dt = read(g, in, op.reads[2]);
  const View<const double> k = read(g, in, op.reads[3]);
  const View<const double> q = read(g, in, op.reads[4]);
  const View<const double> rates = read(g, in, op.reads[5]);
  const View<double> dx = write(g, out, op.writes[0]);
  const View<double> d_dt = write(g, out, op.writes[1]);
  const View<double> dk = write(g, out, op.writes[2]);
  const View<double> dq = write(g, out, op.writes[3]);
  const View<double> d_rates = write(g, out, op.writes[4]);
  for (const View<double>& sum : {dx, d_dt, dk, dq, d_rates}) clear(sum);
  const auto& a = op.attributes.as<ScanShape>();
  const std::int64_t P = a.head_width;
  const std::int64_t N = a.state_width;
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t first = b * a.tokens;
      const std::int64_t group = h / (a.heads / a.groups) * N;
      const auto decay = [&](std::int64_t t, std::int64_t n) {
        return std::exp(dt(first + t, h) * rates(h, n % rates.cols));
      };
      States states(a.tokens, P * N);
      for (std::int64_t t = 0; t < a.tokens; ++t)
        for (std::int64_t p = 0; p < P; ++p)
          for (std::int64_t n = 0; n < N; ++n)
            states.at(t + 1, p * N + n) =
                decay(t, n) * states.at(t, p * N + n) +
                dt(first + t, h) * x(first + t, h * P + p) * k(first + t, group + n);
      std::vector<double> G(static_cast<std::size_t>(P * N));
      for (std::int64_t t = a.tokens - 1; t >= 0; --t) {
        const std::int64_t row = first + t;
        for (std::int64_t p = 0; p < P; ++p)
          for (std::int64_t n = 0; n < N; ++n) {
            double& at = G[static_cast<std::size_t>(p * N + n)];
            at += dy(row, h * P + p) * q(row, group + n);
            const double fresh = at * k(row, group + n);  // of dt·x
            const double log_decay = at * decay(t, n) * states.at(t, p * N + n);
            dq(row, group + n) += dy(row, h * P + p) * states.at(t + 1, p * N + n);
            dk(row, group + n) += at * dt(row, h) * x(row, h * P + p);
            dx(row, h * P + p) += dt(row, h) * fresh;
            d_dt(row, h) += x(row, h * P + p) * fresh + rates(h, n % rates.cols) * log_decay;
            d_rates(h, n % rates.cols) += dt(row, h) * log_decay;
            at *= decay(t, n);
          }
      }
    }
}

}  // namespace reference

}  // namespace fuseline
