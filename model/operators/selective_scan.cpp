// A linear recurrence whose decays come from a step that every token chooses for every head, and
// from fixed rates: one rate a head (Mamba-2), or one for every column of a head's state (Mamba-1).
// What state_scan does, with x multiplied by the step.
#include <cmath>
#include <vector>

#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/scans.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace {

using namespace reference;

// For every token and number of the state: its decay (a product and an exponential), scaled and
// added to (2, and a product with k), its share of y (2). Per column of x one product with the
// step.
Flops count(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<ScanShape>();
  const std::int64_t decays = op.reads[4].cols > 1 ? 2 * a.head_width * a.state_width : 2;
  return checked_product<Flops>(a.batch * a.tokens, a.heads,
                                5 * a.head_width * a.state_width + a.head_width + decays);
}

std::int64_t terms(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<ScanShape>();
  return a.tokens * a.state_width;
}

// Token by token: S <- exp(dt·rates) ∘ S + (dt·x) k^T, y = S q.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> dt = read(g, in, op.reads[1]);
  const View<const double> k = read(g, in, op.reads[2]);
  const View<const double> q = read(g, in, op.reads[3]);
  const View<const double> rates = read(g, in, op.reads[4]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<ScanShape>();
  const std::int64_t P = a.head_width;
  const std::int64_t N = a.state_width;
  std::vector<double> state(static_cast<std::size_t>(P * N));
  const auto S = [&](std::int64_t p, std::int64_t n) -> double& {
    return state[static_cast<std::size_t>(p * N + n)];
  };
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t group = h / (a.heads / a.groups) * N;
      const std::int64_t first = (b * a.heads + h) * P;  // row of the states
      for (std::int64_t p = 0; p < P; ++p)
        for (std::int64_t n = 0; n < N; ++n)
          S(p, n) = op.reads.size() > 5 ? read(g, in, op.reads[5])(first + p, n) : 0.0;
      for (std::int64_t t = b * a.tokens; t < (b + 1) * a.tokens; ++t)
        for (std::int64_t p = 0; p < P; ++p) {
          double sum = 0;
          for (std::int64_t n = 0; n < N; ++n) {
            const double decay = std::exp(dt(t, h) * rates(h, n % rates.cols));
            S(p, n) = decay * S(p, n) + dt(t, h) * x(t, h * P + p) * k(t, group + n);
            sum += S(p, n) * q(t, group + n);
          }
          y(t, h * P + p) = sum;
        }
      if (op.writes.size() < 2) continue;
      const View<double> after = write(g, out, op.writes[1]);
      for (std::int64_t p = 0; p < P; ++p)
        for (std::int64_t n = 0; n < N; ++n) after(first + p, n) = S(p, n);
    }
}

void mainloop(Emitter& e, const Op& op, bool) {
  ScanMainloop m{op.reads[0], op.reads[1], op.reads[2], op.reads[3], op.attributes.as<ScanShape>()};
  m.rates = op.reads[4];
  if (op.reads.size() > 5) m.state = op.reads[5];
  if (op.writes.size() > 1) m.state_after = op.writes[1];
  e.set_mainloop(m, op.writes[0].cols);
  e.produce_result(op.writes[0]);
}

Attributes called(OperatorCall& c) {
  const ScanShape a = scan_of_call(c);
  const std::int64_t rates = c.read(4).cols;
  if (c.read(4).rows != a.heads || (rates != 1 && rates != a.state_width))
    c.refuse("needs rates [heads, 1], or [heads, columns of a state]",
             "[" + std::to_string(a.heads) + ", 1] or [" + std::to_string(a.heads) + ", " +
                 std::to_string(a.state_width) + "]");
  if (c.reads() > 5) c.overwrites(5);
  return a;
}

}  // namespace

constinit const Operator operators::selective_scan{
    .name = "selective_scan",
    .op_class = OpClass::scan,
    .locality = Locality::contraction,
    .formula = "S_t = exp(dt_t·rates) ∘ S_(t-1) + dt_t·x_t k_t^T, y_t = S_t q_t for each head",
    .reads = {kX,
              {"dt", "M", "H"},
              {"k", "M", "K"},
              {"q", "M", "K"},
              {"rates", "H", "C"},
              {"state", "R", "S", true}},
    .write = kY,
    .flops = count,
    .sum_length = terms,
    .reference = compute,
    .lower = in_mainloop,
    .extent = of_result,
    .gradient = no_gradient("it comes with the first block that trains one"),
    .framework = always<Implementation::library_scan>,
    .also_writes = {"state_after", "R", "S"},
    .mainloop = mainloop,
    .columns = ColumnOrder::lost,
    .called = called};

}  // namespace fuseline
