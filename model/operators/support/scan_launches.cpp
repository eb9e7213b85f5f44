// The launches of the chunked algorithm in PyTorch operators, as CUDA-graph replays of it show them
// (scenarios/measurements/h200-open/traces.csv): Dao and Gu, "Transformers are SSMs", listing 1.
// T tokens in all, chunks of Q, H heads of P columns, states of P x N:
//   within a chunk    Y = (q k^T ∘ decays of Q x Q for each head) X
//   states            of each chunk, then of all chunks before it
//   from before       q times the state before the chunk
#include "model/operators/support/scan_launches.h"

#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/operators/support/launch_list.h"

namespace fuseline {

namespace {

struct Scan {
  const Op& op;
  Dtype type;  // of x
  ScanShape shape = op.attributes.as<ScanShape>();
  std::int64_t chunks = shape.batch * ceil_div(shape.tokens, shape.chunk);
  std::int64_t tokens = chunks * shape.chunk;  // padded to whole chunks
  std::int64_t states = (chunks + shape.batch) * shape.heads * shape.head_width;  // rows of N

  [[nodiscard]] Scratch of_columns(const char* name) const {  // as x
    return {name, tokens, shape.heads * shape.head_width, type};
  }
  [[nodiscard]] Scratch of_heads(const char* name,
                                 Dtype dtype) const {  // a number a token and head
    return {name, tokens, shape.heads, dtype};
  }
  [[nodiscard]] Scratch of_pairs(const char* name, Dtype dtype) const {  // two tokens of a chunk
    return {name, tokens * shape.heads, shape.chunk, dtype};
  }
  [[nodiscard]] Scratch of_states(const char* name) const {
    return {name, states, shape.state_width, type};
  }
};

Flops product(std::int64_t a, std::int64_t b, std::int64_t c) {
  return checked_product<Flops>(2, a, b, c);
}

// Decays between any two tokens of a chunk: differences of their sums, of which the later half is
// masked, and exponentials.
void decays(LaunchList& list, const Scan& s) {
  const Scratch sums = s.of_heads("sums", Dtype::fp32);
  const Scratch ordered = s.of_heads("ordered", Dtype::fp32);
  list.add("rates", Implementation::strided, {s.op.reads[1]}, {sums});
  list.add("order", Implementation::strided, {sums}, {ordered});
  list.add("sum", Implementation::framework_reduce, {ordered}, {sums});
  list.add("order_again", Implementation::strided, {sums}, {ordered});
  list.add("sum_again", Implementation::framework_reduce, {ordered}, {sums});
  const Scratch between = s.of_pairs("between", Dtype::fp32);
  const Scratch masked = s.of_pairs("masked", Dtype::fp32);
  list.add("differences", Implementation::strided, {sums}, {between});
  list.add_short({"not_mask"});
  list.add("clone", Implementation::vectorized, {between}, {masked});
  list.add("mask", Implementation::strided, {masked}, {masked});
  list.add("exponential", Implementation::vectorized, {masked}, {between});
  list.add("convert", Implementation::vectorized, {between}, {s.of_pairs("decays", s.type)});
}

void within_chunks(LaunchList& list, const Scan& s) {
  const std::int64_t Q = s.shape.chunk;
  const Scratch scores{"scores", s.tokens * s.shape.groups, Q, s.type};
  const Scratch weighted = s.of_pairs("weighted", s.type);
  const Scratch decays = s.of_pairs("decays", s.type);
  const Scratch scaled = s.of_columns("scaled");
  const Scratch turned = s.of_columns("turned");
  list.add("scores", Implementation::vectorized, {s.op.reads[3], s.op.reads[2]}, {scores}).flops =
      product(s.tokens, Q, s.shape.groups * s.shape.state_width);
  list.add("weigh", Implementation::strided, {decays, scores}, {weighted});
  list.add("order_weights", Implementation::strided, {weighted}, {decays});
  list.add("order_x", Implementation::transposing, {scaled}, {turned});
  list.add("within", Implementation::vectorized, {decays, turned}, {s.of_columns("within")}).flops =
      product(s.tokens, Q, s.shape.heads * s.shape.head_width);
}

// The state after every chunk, of it alone; then what all chunks before it have left, by a product
// whose odd width takes the library's path for operands that are not aligned.
void states(LaunchList& list, const Scan& s) {
  const Scratch late = s.of_columns("late");
  list.add("last", Implementation::strided, {s.of_heads("sums", Dtype::fp32)},
           {s.of_heads("ordered", Dtype::fp32)});
  list.add_short({"last_exponential", "last_convert"});
  list.add("decayed", Implementation::strided, {s.of_columns("scaled")}, {late});
  list.add("states", Implementation::vectorized, {late, s.op.reads[2]}, {s.of_states("states")})
      .flops = product(s.tokens, s.shape.state_width, s.shape.heads * s.shape.head_width);
  list.add_short({"no_state"});
  list.add("join", Implementation::vectorized, {s.of_states("states")}, {s.of_states("joined")});
  list.add_short({"pad", "order_chunks", "sum_chunks", "chunk_differences", "mask_fill", "triangle",
                  "not_triangle", "clone_chunks", "mask_chunks", "chunk_exponential",
                  "chunk_convert"});
  list.add("carry", Implementation::transposing, {s.of_states("joined")}, {s.of_states("states")});
}

void from_before(LaunchList& list, const Scan& s) {
  const Scratch before = s.of_columns("before");
  const Scratch sum = s.of_columns("scaled");
  list.add_short({"sums_exponential", "sums_convert"});
  list.add("order_states", Implementation::transposing, {s.of_states("states")},
           {s.of_states("joined")});
  list.add("before", Implementation::vectorized, {s.of_states("joined"), s.op.reads[3]}, {before})
      .flops = product(s.tokens, s.shape.state_width, s.shape.heads * s.shape.head_width);
  list.add("decay_before", Implementation::strided, {before}, {s.of_columns("late")});
  list.add("both", Implementation::strided, {s.of_columns("within"), s.of_columns("late")}, {sum});
  list.add("order_result", Implementation::strided, {sum}, {s.op.writes[0]});
}

}  // namespace

FrameworkLaunches scan_launches(const Graph& graph, const Op& op) {
  const Scan s{op, graph.tensor(op.reads[0].tensor).dtype};
  const bool goes_on = op.reads.size() > 5;
  const bool library =
      s.shape.tokens == 1 || s.shape.chunk == 1 || op.reads[4].cols != 1 || goes_on;
  if (library) return {};
  LaunchList list;
  list.add("scale", Implementation::strided, {op.reads[0], op.reads[1]}, {s.of_columns("scaled")});
  decays(list, s);
  within_chunks(list, s);
  states(list, s);
  from_before(list, s);
  return std::move(list).instead();
}

}  // namespace fuseline
