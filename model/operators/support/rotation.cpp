#include "model/operators/support/rotation.h"

namespace fuseline {

Flops rotation_flops(const Graph&, const Op& op) {
  const Pairs& pairs = op.attributes.as<Pairs>();
  const Operand& y = op.writes[0];
  return checked_product<Flops>(y.rows, y.cols / pairs.head_width, pairs.turned(), 3);
}

// Columns that do not turn meet cosine 1 and sine 0.
void rotate(Emitter& e, const Op& op, PairFn fn) {
  const Pairs& pairs = op.attributes.as<Pairs>();
  const std::int64_t turned = pairs.turned();
  const std::int64_t period = turned < pairs.head_width ? pairs.head_width : 0;
  const Value x = e.tile(op.reads[0]);
  const Value cos = e.table(op.reads[1], period, 1);
  const Value sin = e.table(op.reads[2], period, 0);
  const std::int64_t distance = pairs.interleaved ? 1 : turned / 2;
  // Where heads are whole runs of pairs, those behind the rotated ones may be taken for pairs too.
  const bool runs = pairs.head_width % (2 * distance) == 0;
  const Value y = e.fresh("rot");
  e.emit(PairMap{{y}, fn, {x, cos, sin}, distance, runs ? 0 : pairs.head_width});
  e.produce(op.writes[0], y);
}

}  // namespace fuseline
