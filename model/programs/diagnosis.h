// What is wrong with a text of programs: the rule, the place, what is allowed, and a mend.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/text/source_text.h"

namespace fuseline {

struct Diagnosis {
  std::string rule;  // its name in model/programs/rules.h
  InputProblem problem;
  std::string mend{};  // what to write instead, where that is known
};

// One of them, thrown where reading cannot go on in its line.
class RefusedLine : public InputError {
 public:
  explicit RefusedLine(Diagnosis d) : InputError(d.problem), diagnosis_(std::move(d)) {}
  [[nodiscard]] const Diagnosis& diagnosis() const { return diagnosis_; }

 private:
  Diagnosis diagnosis_;
};

// File, line, column and the line itself are filled in. Without a mend the line is one with the
// nearest name in place of the wrong one, where there is such a name.
[[noreturn]] void refuse_at(const SourceText& source, Position at, const std::string& rule,
                            InputProblem problem, std::string mend = {});

// The problem's line with the nearest name in place of the wrong one; empty where there is none.
std::string line_with_nearest(const InputProblem& problem);

}  // namespace fuseline
