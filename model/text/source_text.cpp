#include "model/text/source_text.h"

#include <utility>

namespace fuseline {

std::string SourceText::line(int number) const {
  std::size_t begin = 0;
  for (int i = 1; i < number; ++i) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  std::string found = text.substr(begin, text.find('\n', begin) - begin);
  if (!found.empty() && found.back() == '\r') found.pop_back();
  return found;
}

void SourceText::fail(Position at, InputProblem problem) const {
  problem.file = file;
  problem.line = at.line;
  problem.column = at.column;
  problem.shown = line(at.line);
  throw InputError(std::move(problem));
}

}  // namespace fuseline
