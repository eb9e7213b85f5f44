// The rules that turn the outcomes of all settings into a verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/judge/audit/outcome.h"

namespace fuseline::audit {

enum class Judgement : std::uint8_t {
  plausible,    // every setting's prediction supports it, or says more
  only_if,      // some do; or none does, but the limits allow it
  contradicts,  // no setting's limits allow it
  refuted,  // the limits allow it, but what it says does not follow, or its source says otherwise
  not_testable,
};

// A setting with its outcome.
struct Tried {
  Setting setting;
  Outcome outcome;
};

struct Verdict {
  Judgement judgement = Judgement::not_testable;
  std::vector<std::string> conditions;  // of only_if, each a phrase
  std::string reason;                   // one sentence without a full stop
  // Choices that the source leaves open and that were not, or could not be, tried otherwise:
  // "phase decode (a generated token)", "number format bf16". The verdict holds for these.
  std::vector<std::string> rests_on = {};
};

// 1. kind `other`, or no setting at all: not testable. 2. The figure is said to hold everywhere,
// and a case of the source's own is outside it: refuted. 3. No setting's limits allow the figure,
// or those of one do not where it is said to hold everywhere: contradicts the limits, with the
// obstacle of the nearest. 4. All settings reach it or say more: plausible. 5. Some do: plausible
// only if, with what those have in common. 6. None does: refuted where the plans themselves decide
// (fits_in_memory of a fusion, coverage); otherwise, as some limits allow it, plausible only if an
// implementation comes nearer to the limits than any predicted here; the reason says how near.
Verdict judge(const Claim& claim, const std::vector<Tried>& tried);

// "plausible", "plausible only if", "contradicts the limits", "refuted", "not testable".
const char* name_of(Judgement);

// A number in the kind's own quantity, with its unit: "1.69x", "40 %", "26.6 GB", "0.130 USD".
std::string amount_text(const Claim& claim, double amount);
// The figure claimed: "up to 1.7x", "20 to 30 %", "45.2 to 26.8 ms".
std::string figure_text(const Claim& claim);

}  // namespace fuseline::audit
