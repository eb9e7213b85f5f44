// Time and traffic of several policies over one size, and where one overtakes another.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/geometry.h"
#include "gui/model/latest_wins.h"
#include "gui/model/roles.h"
#include "gui/model/table.h"

namespace fuseline::gui {

enum class SweepAxis : std::uint8_t { tokens, context, batch, width };
const char* name_of(SweepAxis axis);  // "T", "S", "B", "D"

struct SweepRequest {
  Setup setup;
  SweepAxis axis = SweepAxis::tokens;
  std::vector<std::int64_t> values;  // ascending
  std::vector<Run> runs;             // predictions; policy, custom choices and name count
};

// Powers of two around the setup's value; widths in multiples of the head width, with F and the
// number of heads in proportion. In decode, tokens sweep new tokens within the context.
std::vector<std::int64_t> default_values(const Setup& setup, SweepAxis axis);

// Values from one size to another: doubling, both ends among them; widths in equal steps of whole
// heads. At most kMostSweepValues. InputError: the ends are the wrong way round, or out of range.
inline constexpr std::size_t kMostSweepValues = 12;
std::vector<std::int64_t> values_between(const Setup& setup, SweepAxis axis, std::int64_t from,
                                         std::int64_t to);
// The model with another width: heads and F in proportion, head width as it is. InputError when D
// is no multiple of the head width.
ModelConfig with_width(const ModelConfig& model, std::int64_t D);

struct SweepPoint {
  std::int64_t value = 0;
  Seconds time;
  Bytes hbm{};
  std::string problem;  // in place of the numbers
  std::string tooltip;
  Subject about{};
};

struct SweepCurve {
  std::string label;
  Colour colour;
  std::vector<SweepPoint> points;  // one for each value
};

// Between two neighbouring values the order of two curves turns round: where both, taken as
// straight on log-log axes, meet. Curves that only touch do not cross.
struct Crossover {
  std::size_t before = 0;  // curve that is faster on the left
  std::size_t after = 0;   // curve that is faster on the right
  double at = 0;
  Seconds time;      // of both, there
  std::string text;  // "coda is faster than eager from T ≈ 730"
};

struct SweepChart {
  SweepAxis axis = SweepAxis::tokens;
  std::string title, x_label;
  Range x;
  Range time_us;  // log axes of whole decades around the values
  Range hbm_bytes;
  std::vector<SweepCurve> curves;
  std::vector<Crossover> crossovers;  // in time, left to right
};

// `work`: value × curves simulations in parallel. Cancelled.
SweepChart sweep(const SweepRequest& request, const std::stop_token& stop = {},
                 const Progress& progress = {});

// Of times alone, for any curves of the same values.
std::vector<Crossover> crossovers(const std::vector<SweepCurve>& curves, const char* axis);

Table to_table(const SweepChart& chart);

}  // namespace fuseline::gui
