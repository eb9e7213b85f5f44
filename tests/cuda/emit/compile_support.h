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

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/emit/comment.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "tests/cuda/compile/no_compiler.h"

namespace fuseline::cuda::test {

inline Workload workload(Phase phase) {
  Workload work;
  work.phase = phase;
  work.batch = phase == Phase::decode ? 16 : 1;
  work.seq = phase == Phase::decode ? 1 : 1024;
  work.context = phase == Phase::decode ? 8192 : 1024;
  return work;
}

// Calls f(plan, program) for every program of all shipped models under all policies that make
// several launches of a block.
inline void for_each_program(Phase phase,
                             const std::function<void(const Plan&, const Program&)>& f) {
  const Workload work = workload(phase);
  for (const std::string& model : model_names()) {
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

  // Compiles the source unless one of the same code was: no spills, and PTX with each of
  // `instructions`.
  void expect_compiles(const Source& source, const std::string& function, SmTarget target,
                       const std::vector<std::string>& instructions) {
    if (!seen_.insert(code_of(source.text, function)).second) return;
    const Compiled compiled = compiler_->compile(source, target);
    EXPECT_EQ(compiled.use.spill_bytes, 0) << source.text;
    EXPECT_EQ(compiled.log.find("C7508"), std::string::npos) << compiled.log;
    for (const std::string& instruction : instructions)
      EXPECT_THAT(compiled.ptx, testing::HasSubstr(instruction)) << source.text;
  }

  std::optional<Compiler> compiler_;
  std::set<std::string> seen_;
};

}  // namespace fuseline::cuda::test
