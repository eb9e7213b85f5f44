// The rules of programs by name, each with its reason: what a check names, and what the handbook's
// chapter "Write an epilogue" explains.
#pragma once

#include <span>
#include <string>

namespace fuseline {

struct ProgramRule {
  const char* name;
  const char* reason;  // one sentence
};

std::span<const ProgramRule> program_rules();
// Asserts that there is such a rule.
const ProgramRule& program_rule(const std::string& name);

}  // namespace fuseline
