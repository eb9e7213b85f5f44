// What a person asks of a search: operators that must, or must not, share a kernel.
#pragma once

#include <string>
#include <vector>

#include "sim/search/rewrite_space.h"

namespace fuseline {

struct Constraint {
  bool together = false;  // else apart
  std::string a, b;       // operators of the block after rewrites

  [[nodiscard]] std::string option() const { return together ? "--keep-together" : "--keep-apart"; }
  [[nodiscard]] std::string text() const { return a + "," + b; }
};

// "gate_up,swiglu", or several such pairs with a semicolon between them. InputError: no pair, an
// operator beside itself.
std::vector<Constraint> parse_constraints(const std::string& text, bool together);

// Leaves the rewritten blocks that have the operators that must share a kernel. InputError: an
// operator that none of them has (nearest name).
std::vector<RewrittenBlock> with_operators(std::vector<RewrittenBlock> blocks,
                                           const std::vector<Constraint>& constraints);

}  // namespace fuseline
