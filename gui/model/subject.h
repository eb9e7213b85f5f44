// What a number of the window is about: the machine, the phase, the sizes and the policy. Every row
// of every table has one, and what compares two numbers asks here whether they are alike.
#pragma once

#include <cstdint>
#include <string>

#include "sim/report/prediction.h"

namespace fuseline::gui {

struct Subject {
  std::string model{};
  std::string gpu{};      // the name, "h200+what-if"
  std::string machine{};  // its title, which says what the factors are
  std::string phase{};
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t context = 0;  // decode only
  std::string formats{};     // "bf16", "weights int4:128, cache bf16, bf16"
  std::string routing{};     // of tokens to experts; empty: as it is expected
  std::string policy{};
  std::string source{};  // "hierarchy", "roofline", "measured"

  friend bool operator==(const Subject&, const Subject&) = default;
};

inline constexpr const char* kMeasuredSource = "measured";
// Of figures that sum up many cases: no sizes are theirs.
inline constexpr const char* kAllCases = "all cases";

// `source`: a fidelity's name, or kMeasuredSource.
Subject subject_of(const PredictionCase& block, const std::string& policy,
                   const std::string& source);

// What a reader has to know of a subject is missing; empty: nothing is.
std::string missing_in(const Subject& subject);

enum class Likeness : std::uint8_t {
  alike,          // one machine, one block
  other_formats,  // the same block, stored in other number formats
  other_machine,  // the same block on another GPU
  mixed,          // a measurement with a prediction of another policy: errors of the prediction
                  // are in the difference
  other_work,     // another model, phase or size: never compared
};
Likeness likeness(const Subject& base, const Subject& other);

// "the baseline is of NVIDIA H100 SXM5 80 GB": what stands beside a difference of the two; empty
// where they are alike.
std::string likeness_note(const Subject& base, const Subject& other);

}  // namespace fuseline::gui
