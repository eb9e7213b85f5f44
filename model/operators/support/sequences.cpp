#include "model/operators/support/sequences.h"

#include <string>

#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"

namespace fuseline {

Attributes sequences_of_call(OperatorCall& call, std::size_t vectors) {
  const std::int64_t rows = call.read(0).rows;
  const std::int64_t sequences = call.read(vectors).rows;
  if (rows % sequences != 0)
    call.refuse(
        std::to_string(rows) + " rows are not " + std::to_string(sequences) + " whole sequences",
        "vectors with a row for each sequence");
  return Sequences{sequences, rows / sequences};
}

void with_sequence(Emitter& e, const Op& op, MapFn fn) {
  const Value x = e.tile(op.reads[0]);
  const Value s = e.sequence(op.reads[1], op.attributes.as<Sequences>().tokens, "s");
  e.produce(op.writes[0], e.map(fn, {x, s}, "y"));
}

void sum_gradient_of_sequences(Adjoint& a, std::size_t i, const std::string& name) {
  if (a.wants(i)) a.emit(name, operators::sequence_sum, {a.dy()}, {a.target(i)}, a.op().attributes);
}

void sum_gradient_of_sequences(Adjoint& a, std::size_t i, const std::string& name,
                               const Operand& z) {
  if (a.wants(i))
    a.emit(name, operators::sequence_sum, {a.dy(), z}, {a.target(i)}, a.op().attributes);
}

}  // namespace fuseline
