// Steps from a plan to better ones: good plans fast, no proof.
#pragma once

#include <functional>

#include "sim/search/evaluator.h"

namespace fuseline {

// What is made small; of two plans the one with the smaller score is better.
using Score = std::function<double(const PlanValues&)>;

// Joins two kernels, parts one operator from a kernel, or gives it to another one, as long as a
// step makes the score smaller and the time is not up. At most `most_tried` plans are looked at.
// Where the first plan cannot be simulated it is given back.
Candidate descend(Trials& trials, Candidate from, const Score& score,
                  std::size_t most_tried = 100'000);

// The grouping of another rewritten block that comes nearest: operators of the same names share a
// kernel where they may, new ones are alone. Empty where the constraints allow none.
std::optional<Grouping> carried_over(const Evaluator& evaluator, const Candidate& from,
                                     std::size_t to);

}  // namespace fuseline
