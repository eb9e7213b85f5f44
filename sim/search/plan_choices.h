// What a plan keeps from size to size: its rewrites, and the operators that share a kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/evaluator.h"
#include "sim/search/search.h"

namespace fuseline {

// The policy that fuses no operator into another one's kernel: what runs where a plan is missing.
inline constexpr const char* kFallbackPolicy = "per-operator";

struct PlanChoices {
  std::string policy;  // whose own plan it is; empty: the kernels below
  std::vector<std::string> rewrites;
  std::vector<std::vector<std::string>> kernels;  // operators by their names
  bool one_launch = false;

  friend bool operator==(const PlanChoices&, const PlanChoices&) = default;
};

PlanChoices choices_of(const SearchResult& result);
PlanChoices fallback_choices();
// As a text, and back.
std::string text_of(const PlanChoices& choices);
PlanChoices choices_from(const std::string& text);

// One size of the block, at which choices are tried. Choices that are not legal there are those of
// kFallbackPolicy.
class SizedBlock {
 public:
  // Both the case and the options must outlive it.
  SizedBlock(const PredictionCase& c, const Workload& workload, const SearchOptions& options);

  [[nodiscard]] const Graph& block() const { return block_; }
  [[nodiscard]] const Workload& workload() const { return work_; }

  Seconds time(const PlanChoices& choices);
  // The same by kernels: attention's, where they are of nothing else, and all others. Empty where
  // no kernel is of attention alone.
  struct Parts {
    Seconds attention, others;
  };
  std::optional<Parts> parts(const PlanChoices& choices);
  Plan plan(const PlanChoices& choices);
  // What a compiler makes for them: a text for each kernel, equal where it is the same machine
  // code at any size. A kernel's tile belongs to it.
  std::vector<std::string> kernels(const PlanChoices& choices);

 private:
  struct Made {
    Plan plan;
    PlanEstimate estimate;
  };
  [[nodiscard]] Made policys(const std::string& policy) const;
  [[nodiscard]] Made made(const PlanChoices& choices);
  std::optional<Candidate> candidate(const PlanChoices& choices);
  std::optional<std::size_t> numbered(const std::vector<std::string>& rewrites);

  const Workload work_;
  const Gpu& gpu_;
  const std::vector<Constraint>& constraints_;
  const Graph block_;
  Evaluator evaluator_;
};

}  // namespace fuseline
