// What must hold of a random text of programs: it is refused by a rule, or it prints as it was
// read, has a time that is not below its limits, and computes what it says.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "model/programs/rules.h"
#include "sim/block/estimate.h"
#include "sim/programs/tile_check.h"
#include "sim/programs/verify_programs.h"
#include "tests/support/random_program.h"

namespace fuseline::test {

struct RandomRunCounts {
  std::int64_t files = 0, legal = 0, programs = 0, lines = 0, tensors = 0;
  // Whose numbers are not finite, are roundings alone, or name rows that there are not, as
  // verifying says.
  std::int64_t without_numbers = 0;
  std::int64_t vague = 0;  // tensors that rounding alone changes by more than a twentieth
  std::map<std::string, std::int64_t> refused{};  // by the first mistake's rule
};

class RandomRun {
 public:
  RandomRun(const Gpu& gpu, RandomProgramOptions options) : gpu_(gpu), options_(options) {}

  // File `seed` of all that there are. False: something does not hold, which was said.
  bool file(std::uint64_t seed) {
    const std::string text = RandomPrograms(seed, options_).next();
    std::string wrong;
    try {
      wrong = broken(text);
    } catch (const InputError& e) {
      if (e.problem().field.starts_with("program "))
        ++counts_.without_numbers;
      else
        wrong = e.what();
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    if (wrong.empty()) return true;
    ADD_FAILURE() << "seed " << seed << ": " << wrong << "\n" << text;
    return false;
  }

  [[nodiscard]] const RandomRunCounts& counts() const { return counts_; }

 private:
  std::string broken(const std::string& text) {
    ++counts_.files;
    const ProgramFile file = read_program_text(text, "random.fuse");
    std::vector<Diagnosis> wrong = check_programs(file);
    if (wrong.empty()) wrong = check_tiles(file, gpu_);
    if (!wrong.empty()) {
      for (const Diagnosis& d : wrong) {
        (void)program_rule(d.rule);
        if (d.problem.line < 1) return d.rule + " names no line";
        // The writer of lines made them all: what is wrong is never how they are written.
        if (d.rule == "syntax" || d.rule == "statement") return format_problem(d.problem);
      }
      ++counts_.refused[wrong.front().rule];
      return "";
    }
    ++counts_.legal;
    return legal(file);
  }

  std::string legal(const ProgramFile& file) {
    const std::string printed = plan_text(file.plan, "h100");
    const ProgramFile read = read_program_text(printed, "printed.fuse");
    if (!read.readable())
      return "printed, it does not read: " + format_problem(read.diagnoses[0].problem);
    if (plan_text(read.plan, read.target) != printed) return "it prints otherwise when read again";

    const Plan plan = whole_plan(file);
    const PlanEstimate estimate = simulate(plan, gpu_, Fidelity::hierarchy);
    const double time = estimate.time.value(), least = estimate.limits.time.value();
    if (!std::isfinite(time) || time <= 0) return "its time is no positive number";
    if (time < least * (1 - 1e-9)) return "its time is below its limit";

    for (const Kernel& k : plan.kernels)
      for (const Program& p : k.phases) {
        ++counts_.programs;
        counts_.lines += std::ssize(p.body);
      }
    const VerifiedPrograms v = verify_programs(plan, gpu_, 1, {.threads = 1});
    for (const VerifiedKernel& k : v.kernels)
      if (!k.differing.empty())
        return k.name + ": other bytes of " + k.differing[0] + " than predicted";
    for (const VerifiedTensor& t : v.tensors) {
      ++counts_.tensors;
      counts_.vague += t.allowed > 0.05 ? 1 : 0;
      if (!t.agrees())
        return t.name + " of " + t.program + ": error " + std::to_string(t.error) + ", allowed " +
               std::to_string(t.allowed);
    }
    return "";
  }

  const Gpu& gpu_;
  RandomProgramOptions options_;
  RandomRunCounts counts_;
};

}  // namespace fuseline::test
