// Sources of all shipped models' plans, each kind once, compiled and judged. Needs a CUDA toolkit,
// no GPU.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/emit/comment.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "tests/cuda/compile/no_compiler.h"
#include "tests/cuda/emit/passed_kernels.h"
#include "tests/model/plan_support.h"
#include "tests/model/refused_phases.h"

namespace fuseline::test {

using cuda::Compiled;
using cuda::Compiler;
using cuda::end_without_compiler;
using cuda::SmTarget;
using cuda::Source;
using cuda::without_comment;

inline Workload workload(Phase phase) {
  Workload work;
  work.phase = phase;
  work.batch = phase == Phase::decode ? 16 : 1;
  work.seq = phase == Phase::decode ? 1 : 1024;
  work.context = phase == Phase::decode ? 8192 : 1024;
  return work;
}

inline const Program& program_of(const Plan& plan, const std::string& kernel) {
  const Kernel* found = find_kernel(plan, kernel);
  if (found == nullptr) throw InternalError("no kernel " + kernel);
  return found->phases.at(0);
}

// Models between them have every operator and every kind of head: all heads their own keys, shared
// keys and a window, learned positions. The others are the same programs in other sizes, which the
// suites named Long compile.
inline std::vector<std::string> models_of_all_kinds() {
  return {"llama2-7b", "mistral-7b", "gpt2-xl"};
}

// Calls f(plan, program) for every program of the models under all policies that make several
// launches of a block.
inline void for_each_program(Phase phase, const std::vector<std::string>& models,
                             const std::function<void(const Plan&, const Program&)>& f) {
  const Workload work = workload(phase);
  for (const std::string& model : models) {
    if (is_refused(model, work)) continue;
    for (const PolicyInfo& policy : policies()) {
      if (policy.name == "custom" || policy.name == "whole-block") continue;
      if (phase == Phase::train && !policy.trains) continue;
      SCOPED_TRACE(policy.name + " " + model);
      const Plan plan = make_plan(policy.name, load_model(model), work);
      for (const Kernel& kernel : plan.kernels)
        for (const Program& program : kernel.phases) f(plan, program);
    }
  }
}

// The text without what two kernels of the same code differ in: the first comment and the name.
inline std::string code_of(const std::string& text, const std::string& function) {
  std::string code(without_comment(text));
  for (const char* before : {" ", "\n"}) {
    for (const char* after : {"(", "_shared_bytes"}) {
      const std::string name = before + function + after;
      for (std::size_t at = 0; (at = code.find(name)) != std::string::npos;)
        code.replace(at, name.size(), std::string(before) + "#" + after);
    }
  }
  return code;
}

class CompileTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      compiler_.emplace();
    } catch (const MissingError& error) {
      end_without_compiler(error);
    }
  }

  [[nodiscard]] bool makes(SmTarget target) const { return compiler_->makes(target); }

  // Compiles the source unless one of the same code was, by whatever name: at most `spilled` bytes
  // in the stack, neither spills nor arrays if 0, and PTX with each of `instructions`.
  void expect_compiles(const Source& source, const std::string& function, SmTarget target,
                       const std::vector<std::string>& instructions, int spilled = 0) {
    const Source code{"kernel.cu", code_of(source.text, function)};
    if (!seen_.insert(code.text).second) return;
    const Passed passed(*compiler_, target, code,
                        spilled == 0
                            ? fmt::format("no stack, {}", fmt::join(instructions, ", "))
                            : fmt::format("{} bytes, {}", spilled, fmt::join(instructions, ", ")));
    if (passed.known()) return;
    const Compiled compiled = compiler_->compile(source, target);
    EXPECT_LE(compiled.use.spill_bytes, spilled) << source.text;
    EXPECT_LE(compiled.use.stack_bytes, spilled) << source.text;
    EXPECT_EQ(compiled.log.find("C7508"), std::string::npos) << compiled.log;
    for (const std::string& instruction : instructions)
      EXPECT_THAT(compiled.ptx, testing::HasSubstr(instruction)) << source.text;
    if (testing::Test::HasFailure()) return;
    passed.remember();
    // Of the same code another test may expect less.
    if (spilled == 0) Passed(*compiler_, target, code, "no stack, ").remember();
  }

  std::optional<Compiler> compiler_;
  std::set<std::string> seen_;
};

}  // namespace fuseline::test
