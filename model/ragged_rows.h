// How many rows the groups of a ragged product have when nobody knows: what routing is expected to
// give.
#pragma once

#include <cstdint>

#include "model/config/routing_loads.h"
#include "model/operators/attributes.h"

namespace fuseline {

// Each row goes to `each` different groups of the E = `groups`, all with the same probability. The
// number of groups that have rows is the expected one, E·(1 - (1 - each/E)^rows). Their lengths
// differ as those of independent draws do: they are quantiles of the binomial distribution, the
// longest first. None is longer than `rows`, and they add up to rows · each. Groups without rows
// are left out.
RaggedRows assumed_rows(std::int64_t rows, std::int64_t groups, std::int64_t each = 1);

// The same where loads of experts are given: the longest first, those without rows left out.
// Shares become whole rows, with the largest remainders rounded up. InputError: loads of another
// number of experts, rows that are not those of so many tokens, a group with more rows than there
// are tokens.
RaggedRows routed_rows(const RoutingLoads& routing, std::int64_t rows, std::int64_t groups,
                       std::int64_t each = 1);

}  // namespace fuseline
