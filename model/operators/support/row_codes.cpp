#include "model/operators/support/row_codes.h"

#include <algorithm>
#include <cmath>

#include "model/config/code_table.h"
#include "model/emit.h"
#include "model/formats/least_scale.h"
#include "model/formats/weight_format.h"
#include "model/operators/attributes.h"
#include "model/operators/support/view.h"
#include "model/primitives/functions.h"

namespace fuseline {

using namespace reference;

void codes_reference(const Coding& coding, const Graph& g, const Op& op, const TensorValues& in,
                     TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> code = write(g, out, op.writes[0]);
  const View<double> scale = write(g, out, op.writes[1]);
  const CodeTable& codes = code_table(g.tensor(op.writes[0].tensor).dtype);
  const std::int64_t width = coding.columns;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t first = 0; first < x.cols; first += width) {
      double most = 0;
      for (std::int64_t c = first; c < first + width; ++c)
        most = std::max(most, std::fabs(x(r, c)));
      const double s = std::max(most / coding.largest, kLeastScale);
      scale(r, first / width) = s;
      for (std::int64_t c = first; c < first + width; ++c) code(r, c) = codes.rounded(x(r, c) / s);
    }
  }
}

Value codes_by_largest(Emitter& e, const Coding& coding, const Op& op, Value x, Value most) {
  const Value part = e.map(maps::scale_by_constant, {most}, "s", 1.0 / coding.largest);
  const Value s = e.map(maps::at_least, {part}, "s", kLeastScale);
  const Value inverse = e.map(maps::reciprocal, {s}, "inverse");
  e.produce(op.writes[0], e.map(maps::mul, {x, inverse}, "code"));
  return s;
}

void lower_groups(Emitter& e, const Coding& coding, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value a = e.map(maps::absolute, {x}, "a");
  const Value most = e.group_reduce(reductions::max, a, coding.columns, "most");
  // Whoever reads codes is another kernel, which reads the scales too.
  e.emit(StoreGroups{codes_by_largest(e, coding, op, x, most), op.writes[1], coding.columns});
}

Coding row_coding(const Op& op) {
  const StoredWeight& activation = op.attributes.as<RowCodes>().activation;
  return {activation.format->largest, activation.group == 0 ? op.reads[0].cols : activation.group};
}

}  // namespace fuseline
