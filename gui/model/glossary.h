// Terms that tooltips explain, in a sentence or two.
#pragma once

#include <string>
#include <vector>

namespace fuseline::gui {

struct Term {
  std::string name;
  std::string text;
};

// In alphabetical order: words of the design, policies, rewrites, bounds.
std::vector<Term> glossary();

// Case-insensitive; empty when the term is not explained.
std::string explain_term(const std::string& name);

}  // namespace fuseline::gui
