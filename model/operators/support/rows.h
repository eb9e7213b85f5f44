// Rows of logits and of row numbers; shared by the reference functions of losses and gathers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "model/graph.h"
#include "model/operators/support/view.h"

namespace fuseline::reference {

// Maximum, and sum of exponentials above it, of columns [begin, end) of row m.
struct OnlineSum {
  double top = 0;
  double sum = 0;
};
inline OnlineSum online_sum(const View<const double>& x, std::int64_t m, std::int64_t begin,
                            std::int64_t end) {
  OnlineSum s{x(m, begin), 0};
  for (std::int64_t n = begin; n < end; ++n) s.top = std::max(s.top, x(m, n));
  for (std::int64_t n = begin; n < end; ++n) s.sum += std::exp(x(m, n) - s.top);
  return s;
}

inline std::int64_t index_at(const View<const double>& ids, std::int64_t m, std::int64_t count,
                             const Op& op) {
  const std::int64_t i = static_cast<std::int64_t>(ids(m, 0));
  FUSELINE_ASSERT(i >= 0 && i < count, op.name);
  return i;
}

}  // namespace fuseline::reference
