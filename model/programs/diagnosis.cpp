#include "model/programs/diagnosis.h"

#include <utility>

namespace fuseline {

void refuse_at(const SourceText& source, Position at, const std::string& rule,
               InputProblem problem) {
  problem.file = source.file;
  problem.line = at.line;
  problem.column = at.column;
  problem.shown = source.line(at.line);
  throw RefusedLine({.rule = rule, .problem = std::move(problem)});
}

}  // namespace fuseline
