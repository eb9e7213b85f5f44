// Whether the values of a program can share a tile: which columns of the index space each has.
#pragma once

#include <string>
#include <vector>

#include "model/programs/problem.h"

namespace fuseline {

// Of the body of a program whose own check found nothing: values whose columns meet others than
// their own, lie outside the index space, or are used by no line.
std::vector<ProgramProblem> column_problems(const Graph& graph, const Program& program);

}  // namespace fuseline
