// What is wrong with a program, and where: which line of it.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

class Graph;
struct Program;

struct ProgramProblem {
  std::string rule;  // its name in model/programs/rules.h
  std::string text;
  bool in_prologue = false;
  int primitive = -1;  // of the body or prologue; -1: the mainloop, or the program as a whole
};

// All that check_program() finds, in program order.
std::vector<ProgramProblem> program_problems(const Graph& graph, const Program& program);

}  // namespace fuseline
