// Mistaken programs, made from right ones: each mutator breaks one rule in one line, and says
// which.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace fuseline::test {

struct Mistake {
  std::string base;  // the name of the text that it was made from
  std::string what;  // the mutator's name
  bool typing = false;
  std::string text{};
  std::set<std::string> rules{};  // one of these is to be named
  // The changed line, 1-based; where two lines are equally to blame, both.
  std::set<int> lines{};
};

// Everything that the mutators make of a text; at most `each` of one mutator.
std::vector<Mistake> mistakes_in(const std::string& base, const std::string& text, int each);

}  // namespace fuseline::test
