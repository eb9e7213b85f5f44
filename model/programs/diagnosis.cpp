#include "model/programs/diagnosis.h"

#include <algorithm>
#include <utility>

namespace fuseline {

// "  o = geglv(y)" -> "o = geglu(y)".
std::string line_with_nearest(const InputProblem& p) {
  if (p.nearest.empty() || p.value.empty() || p.column < 1) return "";
  const std::size_t at = p.shown.find(p.value, static_cast<std::size_t>(p.column) - 1);
  if (at == std::string::npos) return "";
  std::string line = p.shown;
  line.replace(at, p.value.size(), p.nearest);
  line = line.substr(0, line.find('#'));
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

void refuse_at(const SourceText& source, Position at, const std::string& rule, InputProblem problem,
               std::string mend) {
  problem.file = source.file;
  problem.line = at.line;
  problem.column = at.column;
  problem.shown = source.line(at.line);
  if (mend.empty()) mend = line_with_nearest(problem);
  throw RefusedLine({.rule = rule, .problem = std::move(problem), .mend = std::move(mend)});
}

}  // namespace fuseline
