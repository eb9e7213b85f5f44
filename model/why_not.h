// What can share a kernel, and the reason when it cannot: the legality rules that all policies
// obey.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "model/target.h"

namespace fuseline {

// Why the operators cannot be one program; empty = they can. Reasons: second mainloop, an operand
// of the mainloop computed on the fly, a full row needed while tiles hold part of it, pairs that
// are not adjacent, partials of all tiles needed, different index spaces, more tiles than the
// target's shared memory holds. `ops` in dependency order.
std::string why_no_program(const Graph& graph, const std::vector<OpId>& ops,
                           const Target& target = {});

// Why two of the groups cannot be merged: no program, or a cycle through another group (named by
// its operators). Empty = they can.
std::string why_not_merge(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                          std::size_t a, std::size_t b, const Target& target = {});

// Why the groups cannot be put into an order, seen from one of them; empty = they can.
std::string why_cycle(const Graph& graph, const std::vector<std::vector<OpId>>& groups,
                      std::size_t group);

}  // namespace fuseline
