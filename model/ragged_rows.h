// How many rows the groups of a ragged product have when nobody knows: what routing is expected to
// give.
#pragma once

#include <cstdint>

#include "model/config/routing_loads.h"
#include "model/operators/attributes.h"

namespace fuseline {

// Rows that each go to `each` different ones of `groups` groups, all with equal probability. As
// many groups have rows as on average, E·(1 - (1 - each/E)^rows); their lengths are spread as those
// of independent draws (quantiles of the binomial distribution), the longest first, at most `rows`,
// and add up to rows · each. Groups without rows are left out.
RaggedRows assumed_rows(std::int64_t rows, std::int64_t groups, std::int64_t each = 1);

// The same where loads of experts are given: the longest first, those without rows left out.
// Shares become whole rows, with the largest remainders rounded up. InputError: loads of another
// number of experts, rows that are not those of so many tokens, a group with more rows than there
// are tokens.
RaggedRows routed_rows(const RoutingLoads& routing, std::int64_t rows, std::int64_t groups,
                       std::int64_t each = 1);

}  // namespace fuseline
