// What follows from the match of each launch with a kernel of the plan: sums over a kernel's
// launches, what is left, the bytes of each tensor. A person may know better than the match: then
// all of that follows from what they say.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/traces/matched_trace.h"

namespace fuseline {

SpreadOfTimes spread_of(std::vector<double> seconds);  // not empty

// Of so many kernels, from the launches.
void sum_kernels(MatchedTrace& trace, std::size_t kernels);
// Launches that are no kernel's, beside the copies and fills that are in the list; longest first.
void list_unmatched(MatchedTrace& trace);
// Bytes of a kernel's counters, divided as the prediction divides them.
void attribute_counters(MatchedTrace& trace, const CandidatePlan& plan);

// These launches, by their places in the block, are that kernel of the estimate; empty: none of
// it. Their other matches end. Asserts that launches and kernel are there.
MatchedTrace matched_by_hand(MatchedTrace trace, const std::vector<std::size_t>& launches,
                             std::optional<std::size_t> kernel, const CandidatePlan& plan);

}  // namespace fuseline
