// Factors by which a scenario changes numbers of its GPU: "what if HBM were twice as fast".
#pragma once

#include <array>
#include <string>

namespace fuseline {

// 1 = as described. with_what_if() (sim/gpu/what_if.h) says what each factor changes.
struct WhatIf {
  double hbm_bandwidth = 1;
  double l2_bandwidth = 1;
  double l2_capacity = 1;
  double sm_count = 1;
  double sm_clock = 1;

  [[nodiscard]] bool is_neutral() const { return *this == WhatIf{}; }
  [[nodiscard]] bool is_only_sm_count() const { return *this == WhatIf{.sm_count = sm_count}; }
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

// The range that each factor may have, both ends included.
inline constexpr double kLeastFactor = 0.125;
inline constexpr double kMostFactor = 8;

// Key in a scenario's [what_if] table and the factor that it sets.
struct WhatIfField {
  const char* key;
  double WhatIf::*factor;
};
inline constexpr std::array<WhatIfField, 5> kWhatIfFields = {{
    {"hbm_bandwidth", &WhatIf::hbm_bandwidth},
    {"l2_bandwidth", &WhatIf::l2_bandwidth},
    {"l2_capacity", &WhatIf::l2_capacity},
    {"sm_count", &WhatIf::sm_count},
    {"sm_clock", &WhatIf::sm_clock},
}};

}  // namespace fuseline
