#include "gui/model/delta.h"

#include <cmath>
#include <limits>

#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

Delta make(double base, double value, std::string absolute) {
  Delta d;
  if (base == 0) {
    d.relative = value == 0 ? 0 : std::numeric_limits<double>::infinity();
  } else {
    d.relative = (value - base) / base;
  }
  d.size = size_of_delta(d.relative);
  d.absolute_text = std::move(absolute);
  d.relative_text = std::isinf(d.relative) ? "new" : signed_percent_text(d.relative);
  const ColourRole role = d.size == DeltaSize::neutral ? ColourRole::neutral
                          : d.relative < 0             ? ColourRole::better
                                                       : ColourRole::worse;
  d.colour = {role, static_cast<int>(d.size)};
  return d;
}

}  // namespace

DeltaSize size_of_delta(double relative) {
  const double magnitude = std::abs(relative);
  if (magnitude < 0.01) return DeltaSize::neutral;
  if (magnitude < 0.05) return DeltaSize::small;
  return magnitude < 0.20 ? DeltaSize::medium : DeltaSize::large;
}

Delta delta_of(Bytes base, Bytes value) {
  return make(base.as_double(), value.as_double(), signed_bytes(value - base));
}

Delta delta_of(Seconds base, Seconds value) {
  return make(base.value(), value.value(), signed_time(value - base));
}

}  // namespace fuseline::gui
