// The gradient of selective_scan: the recurrence backwards in time. What the loss says of the state
// behind a token is G_t = dy_t q_t^T + a_(t+1) ∘ G_(t+1), and all gradients are products with it.
// One walk gives those of all operands. Its states come from those that the forward pass kept, and
// are computed again between them.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/scan_gradient.h"
#include "model/operators/support/scans.h"

namespace fuseline {

namespace in_selective_scan_backward {
namespace {

using namespace reference;

// For every token and number of the state: the state again (3), dq and the part of G that dy gives
// (2 each), dx and dk (2 each), the decay's gradient (2), G decayed (1). For every column of x its
// share of the step (1) and its part of dx and of the step's gradient (3). For every decay itself
// (a product and an exponential), and the gradients of step and rate (2 each).
Flops count(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<ScanShape>();
  const std::int64_t numbers = a.head_width * a.state_width;
  const std::int64_t decays = op.reads[5].cols > 1 ? numbers : 1;
  return checked_product<Flops>(a.batch * a.tokens, a.heads,
                                14 * numbers + 4 * a.head_width + 6 * decays);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  scan_gradient(g, op, in, out);
}

void mainloop(Emitter& e, const Op& op, bool) {
  ScanMainloop m{op.reads[1], op.reads[2], op.reads[3], op.reads[4], op.attributes.as<ScanShape>()};
  m.rates = op.reads[5];
  m.gradient = ScanGradient{.dy = op.reads[0],
                            .states = std::nullopt,
                            .d_decay = op.writes[1],
                            .dk = op.writes[2],
                            .dq = op.writes[3],
                            .d_rates = op.writes[4]};
  if (op.reads.size() > 6) m.gradient->states = op.reads[6];
  e.set_mainloop(m, op.writes[0].cols);
  e.produce_result(op.writes[0], "dx");
}

}  // namespace
}  // namespace in_selective_scan_backward

constinit const Operator operators::selective_scan_backward{
    .name = "selective_scan_backward",
    .op_class = OpClass::scan,
    .locality = Locality::contraction,
    .formula =
        "G_t = dy_t q_t^T + a_(t+1) ∘ G_(t+1): dx = dt·G k, dk = dt·x G, dq = dy S, and of "
        "a = exp(dt·rates)",
    .reads = {kDy,
              kX,
              {"dt", "M", "H"},
              {"k", "M", "K"},
              {"q", "M", "K"},
              {"rates", "H", "C"},
              {"states", "R", "S", true}},
    .write = kDx,
    .flops = in_selective_scan_backward::count,
    .sum_length = scan_gradient_terms,
    .reference = in_selective_scan_backward::compute,
    .lower = in_mainloop,
    .extent = of_result,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::library_scan>,
    .further_writes = {{"d_dt", "M", "H"},
                       {"dk", "M", "K"},
                       {"dq", "M", "K"},
                       {"d_rates", "H", "C"}},
    .negative_read = 5,
    .mainloop = in_selective_scan_backward::mainloop,
    .columns = ColumnOrder::lost};

}  // namespace fuseline
