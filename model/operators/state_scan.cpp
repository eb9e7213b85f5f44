// A linear recurrence with a matrix as its state, for every head: each token scales the state, adds
// a product of two vectors to it, and reads it with a third (selective scans, gated linear
// attention). Computed in chunks of tokens by products of matrices, or step by step.
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

namespace in_state_scan {
namespace {

using namespace reference;

// The chunks of one head and sequence, the last one perhaps shorter. Per pair (s <= t) of a chunk
// of tokens: q·k (2N), its decay (an exponential and a product) and its share of x (2P). Per token:
// the state's share of y (2PN, scaled and added: 2P), and the token's of the state (2PN, k scaled:
// N). Per chunk: the state scaled (PN).
Flops count(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<ScanShape>();
  const std::int64_t P = a.head_width;
  const std::int64_t N = a.state_width;
  const auto pairs_of = [](std::int64_t tokens) { return tokens * (tokens + 1) / 2; };
  const std::int64_t chunk = std::min(a.chunk, a.tokens);
  const std::int64_t chunks = ceil_div(a.tokens, chunk);
  const std::int64_t last = a.tokens - (chunks - 1) * chunk;
  const std::int64_t pairs = (chunks - 1) * pairs_of(chunk) + pairs_of(last);
  const Flops head = checked_product<Flops>(pairs, 2 * N + 2 * P + 2) +
                     checked_product<Flops>(a.tokens, 4 * P * N + 2 * P + N) +
                     checked_product<Flops>(chunks, P * N);
  return checked_product<Flops>(a.batch, a.heads, head.value());
}

// Token by token: S <- exp(log_decay)·S + x k^T, y = S q.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> log_decay = read(g, in, op.reads[1]);
  scan_tokens(g, op, in, out, 4, [&](std::int64_t t, std::int64_t h, std::int64_t) {
    return TokenOfScan{.log_decay = log_decay(t, h), .share = 1};
  });
}

void mainloop(Emitter& e, const Op& op, bool) {
  ScanMainloop m{op.reads[0], op.reads[1], op.reads[2], op.reads[3], op.attributes.as<ScanShape>()};
  if (op.reads.size() > 4) m.state = op.reads[4];
  if (op.writes.size() > 1) m.state_after = op.writes[1];
  e.set_mainloop(m, op.writes[0].cols);
  e.produce_result(op.writes[0]);
}

Attributes called(OperatorCall& c) {
  const ScanShape a = scan_of_call(c);
  if (c.reads() > 4) c.overwrites(4);
  return a;
}

}  // namespace
}  // namespace in_state_scan

constinit const Operator operators::state_scan{
    .name = "state_scan",
    .op_class = OpClass::scan,
    .locality = Locality::contraction,
    .formula = "S_t = exp(log_decay_t)·S_(t-1) + x_t k_t^T, y_t = S_t q_t for each head",
    .reads =
        {kX, {"log_decay", "M", "H"}, {"k", "M", "K"}, {"q", "M", "K"}, {"state", "R", "S", true}},
    .write = kY,
    .flops = in_state_scan::count,
    .sum_length = scan_terms,
    .reference = in_state_scan::compute,
    .lower = in_mainloop,
    .extent = of_result,
    .gradient = no_gradient("it comes with the first block that trains one"),
    .framework = always<Implementation::library_scan>,
    .also_writes = {"state_after", "R", "S"},
    .mainloop = in_state_scan::mainloop,
    .columns = ColumnOrder::lost,
    .called = in_state_scan::called};

}  // namespace fuseline
