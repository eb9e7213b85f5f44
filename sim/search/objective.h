// What a search makes small.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/search/least_cost.h"

namespace fuseline {

enum class Objective : std::uint8_t { time, hbm, launches, memory, energy };

// Of one plan, by Objective.
using PlanValues = std::array<double, 5>;

const std::vector<std::string>& objective_words();  // in the order of the enumerators
const char* name_of(Objective);
const char* unit_of(Objective);  // "µs", "MB", "", "mJ"

// Why it is not modelled on the GPU; empty: it is.
std::string why_not_modelled(Objective objective, const Gpu& gpu);

// Of one block, in seconds, bytes, launches or joules. memory: the most of its activations that is
// alive at once.
double value_of(Objective objective, const Plan& plan, const PlanEstimate& estimate,
                const Gpu& gpu);
// The value in unit_of().
double shown(Objective objective, double value);

// What a kernel adds to it at least, where no plan that is looked for runs at a higher clock.
// `one_launch`: it may be a phase of a launch.
double least_of(Objective objective, const LeastCost& cost, const Gpu& gpu, double highest_clock,
                bool one_launch);
// What no plan of the block passes.
double limit_of(Objective objective, const Graph& block, const Gpu& gpu);

}  // namespace fuseline
