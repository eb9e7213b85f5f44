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
#include "model/operators/support/scan_gradient.h"
#include "model/operators/support/scan_launches.h"
#include "model/operators/support/scans.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_selective_scan {
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

// Token by token: S <- exp(dt·rates) ∘ S + (dt·x) k^T, y = S q.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dt = read(g, in, op.reads[1]);
  const View<const double> rates = read(g, in, op.reads[4]);
  scan_tokens(g, op, in, out, 5, [&](std::int64_t t, std::int64_t h, std::int64_t n) {
    return TokenOfScan{.log_decay = dt(t, h) * rates(h, n % rates.cols), .share = dt(t, h)};
  });
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

// A compiler of loops cannot take the framework's way (PyTorch 2.11 fails on its running sums): it
// calls the library's scan.
FrameworkLaunches framework_launches(const Graph& graph, const Op& op, bool generated) {
  return generated ? FrameworkLaunches{} : scan_launches(graph, op);
}

}  // namespace
}  // namespace in_selective_scan

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
    .flops = in_selective_scan::count,
    .sum_length = scan_terms,
    .reference = in_selective_scan::compute,
    .lower = in_mainloop,
    .extent = of_result,
    .gradient = selective_scan_gradient,
    .framework = always<Implementation::library_scan>,
    .also_writes = {"state_after", "R", "S"},
    .negative_read = 4,
    .mainloop = in_selective_scan::mainloop,
    .columns = ColumnOrder::lost,
    .framework_launches = in_selective_scan::framework_launches,
    .called = in_selective_scan::called};

}  // namespace fuseline
