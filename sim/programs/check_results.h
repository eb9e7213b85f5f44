// What a machine stored, held against the fp64 meaning of the programs' text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/programs/meaning.h"
#include "sim/executor/storage.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {

// Maps may make relative errors so many times larger than roundings are.
inline constexpr double kAmplifiedRoundings = 4;

// What an operand that a program stores may be away from fp64, relative L2 (verify_programs.h has
// the formula).
struct AllowedError {
  std::string program;
  Operand stored;
  double error = 0;
};
// Of every store, in the plan's order.
std::vector<AllowedError> allowed_errors(const Plan& plan);

// Multiplications that a plan's mainloops take in fp64, which are most of its time there.
std::int64_t products_of(const Program& program);
std::int64_t products_of(const Plan& plan);

// Why nothing can be compared with what the program makes in fp64: it is not finite there. Random
// inputs may leave the domain of a line, as kept sums of squares do that are drawn negative. Empty:
// it is finite.
std::string why_not_finite(const Graph& graph, const Program& program, const ExactTensors& exact);

struct CheckedResults {
  std::vector<VerifiedTensor> tensors;
  std::int64_t rows = 0;  // of every tensor that were checked; 0: all of them
  // Each program was looked at on its own, on rows that its tensors tell.
  bool alone = false;
  std::string why_not;  // why nothing was checked; empty: it was
  [[nodiscard]] bool passed() const;
};

// All rows where fp64 can compute them in some seconds, else a sample of them that depends on the
// seed, and where rows of one program need many of another, each program on its own with what the
// machine stored before it (spot_check.h). `stored` gives the tensors after the run; `threads`: of
// products in fp64. A plan whose meaning nobody states, or whose rows are too many and need each
// other, is not checked, and says so.
CheckedResults check_results(const Plan& plan, const executor::Inputs& inputs,
                             const std::function<const executor::Storage&(TensorId)>& stored,
                             std::uint64_t seed, int threads = 1);

}  // namespace fuseline
