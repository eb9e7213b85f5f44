// Plans that one piece of work of a search tries, and their text, in which other ranks get them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/evaluator.h"

namespace fuseline {

// Beside an evaluator, which must outlive it and must not change meanwhile.
class Trials {
 public:
  explicit Trials(const Evaluator& evaluator) : evaluator_(evaluator) {}
  // What text() says.
  Trials(const Evaluator& evaluator, const std::string& text);

  std::optional<PlanValues> values(const Candidate& candidate);
  [[nodiscard]] KernelSpace& space(std::size_t block) const { return evaluator_.space(block); }
  [[nodiscard]] std::size_t tried() const { return tried_; }
  [[nodiscard]] bool over() const { return evaluator_.late(); }
  [[nodiscard]] std::string text() const;

  // Those that the evaluator did not know, in the order in which they were tried.
  struct One {
    Candidate candidate;
    TriedPlan plan;
  };
  [[nodiscard]] const std::vector<One>& all() const { return all_; }

 private:
  const Evaluator& evaluator_;
  std::vector<One> all_;
  std::map<std::pair<std::size_t, Grouping>, std::size_t> places_;
  std::size_t tried_ = 0;
};

}  // namespace fuseline
