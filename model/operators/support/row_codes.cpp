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

std::int64_t coded_columns(const Op& op) {
  const StoredWeight& activation = op.attributes.as<RowCodes>().activation;
  return activation.group == 0 ? op.reads[0].cols : activation.group;
}

void row_codes_reference(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> code = write(g, out, op.writes[0]);
  const View<double> scale = write(g, out, op.writes[1]);
  const StoredWeight& activation = op.attributes.as<RowCodes>().activation;
  const CodeTable& codes = code_table(activation.element());
  const std::int64_t width = coded_columns(op);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t first = 0; first < x.cols; first += width) {
      double most = 0;
      for (std::int64_t c = first; c < first + width; ++c)
        most = std::max(most, std::fabs(x(r, c)));
      const double s = std::max(most / activation.format->largest, kLeastScale);
      scale(r, first / width) = s;
      for (std::int64_t c = first; c < first + width; ++c) code(r, c) = codes.rounded(x(r, c) / s);
    }
  }
}

Value codes_by_largest(Emitter& e, const Op& op, Value x, Value most) {
  const StoredWeight& activation = op.attributes.as<RowCodes>().activation;
  const Value part = e.map(maps::scale_by_constant, {most}, "s", 1.0 / activation.format->largest);
  const Value s = e.map(maps::at_least, {part}, "s", kLeastScale);
  const Value inverse = e.map(maps::reciprocal, {s}, "inverse");
  e.produce(op.writes[0], e.map(maps::mul, {x, inverse}, "code"));
  return s;
}

}  // namespace fuseline
