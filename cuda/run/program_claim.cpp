#include "cuda/run/program_claim.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/block/limits.h"

namespace fuseline::cuda {

namespace {

// Clocks of one GPU are not those of another to the last percent, and events count in steps of half
// a microsecond.
constexpr double kAboveCeiling = 0.97;

std::string words(const std::vector<std::uint64_t>& seeds) {
  return fmt::format("{} {}", seeds.size() == 1 ? "seed" : "seeds", fmt::join(seeds, ", "));
}

}  // namespace

std::vector<std::string> claim_rules() {
  return {"unchecked", "wrong", "one-seed", "ignores-inputs", "no-work", "above-ceilings"};
}

Seconds least_possible(const ClaimEvidence& e, const Gpu& gpu) {
  const Bytes beyond(std::max<std::int64_t>(0, e.compulsory.value() - gpu.l2_capacity.value()));
  return std::max(e.flops / boosted_tensor_peak(gpu, e.products), beyond / gpu.hbm_bandwidth);
}

std::vector<ClaimFault> claim_faults(const ClaimEvidence& e, const Gpu& gpu) {
  std::vector<ClaimFault> faults;
  std::vector<std::uint64_t> right, wrong;
  std::string worst, why_not;
  for (const SeedRun& run : e.seeds) {
    if (!run.check.why_not.empty()) why_not = run.check.why_not;
    (run.check.passed() ? right : wrong).push_back(run.seed);
    for (const VerifiedTensor& t : run.check.tensors)
      if (!t.agrees() && worst.empty())
        worst = fmt::format("{} of {} is {:.3g} from fp64, allowed {:.3g}", t.name, t.program,
                            t.error, t.allowed);
  }
  if (!why_not.empty())
    faults.push_back({"unchecked", "nothing says that the results are right: " + why_not});
  else if (e.seeds.size() < 3)
    faults.push_back({"unchecked", "results were checked with fewer than three seeds"});
  else if (right.empty())
    faults.push_back({"wrong", worst});
  else if (!wrong.empty())
    faults.push_back({"one-seed", fmt::format("right for {} and wrong for {}: {}", words(right),
                                              words(wrong), worst)});
  const bool same = std::ranges::all_of(
      e.seeds, [&](const SeedRun& run) { return run.bits == e.seeds.front().bits; });
  if (e.seeds.size() > 1 && same)
    faults.push_back(
        {"ignores-inputs", fmt::format("{} different inputs gave the same bits", e.seeds.size())});
  if (!e.stored_while_timed)
    faults.push_back({"no-work",
                      "what the programs store was made NaN before the timed runs, and is not what "
                      "they should store after them"});
  const Seconds least = least_possible(e, gpu);
  if (e.least < least * kAboveCeiling)
    faults.push_back({"above-ceilings",
                      fmt::format("{:.2f} µs are less than the {:.2f} µs that {}'s tensor cores "
                                  "and HBM need at their datasheet's rates",
                                  to_us(e.least), to_us(least), gpu.title)});
  return faults;
}

}  // namespace fuseline::cuda
