// Sources of all shipped models' plans, each kind once, compiled and judged. Needs a CUDA toolkit,
// no GPU.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/uuid/detail/sha1.hpp>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/emit/comment.h"
#include "cuda/run/kernel_store.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "tests/cuda/compile/no_compiler.h"
#include "tests/model/plan_support.h"
#include "tests/model/refused_phases.h"

namespace fuseline::test {

using cuda::cache_key;
using cuda::Compiled;
using cuda::Compiler;
using cuda::CubinCache;
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

// Sources that passed in an earlier run are not compiled again: the compiler gives the same for the
// same text, device headers, options and toolkit. What is expected is part of the key, so whoever
// expects more writes it there. FUSELINE_COMPILE_AGAIN=1 compiles all of them. They are remembered
// in the folder FUSELINE_PASSED_KERNELS, which clones share as they share ccache's, or else in the
// build's. With FUSELINE_KERNELS_OF_DAY=N only the third that is N's, modulo 3, is compiled:
// ./test.sh asks for that on a machine that remembers none.
class Passed {
 public:
  Passed(const Compiler& compiler, SmTarget target, const Source& source,
         const std::string& expected)
      : key_(digest(cache_key(compiler, target, source) + "\n" + expected)) {}

  [[nodiscard]] bool before() const {
    return std::getenv("FUSELINE_COMPILE_AGAIN") == nullptr && store().find(key_).has_value();
  }
  void remember() const { store().store(key_, {'+'}); }
  // Whether it waits for another day.
  [[nodiscard]] bool waits() const {
    const char* day = std::getenv("FUSELINE_KERNELS_OF_DAY");
    return day != nullptr &&
           std::stoull(key_.substr(0, 8), nullptr, 16) % 3 != std::stoull(day) % 3;
  }

 private:
  // A key holds all device headers, a hundred thousand characters, and there are thousands of keys:
  // their SHA-1 stands for them, so that all of them find room.
  static std::string digest(const std::string& key) {
    boost::uuids::detail::sha1 sha;
    sha.process_bytes(key.data(), key.size());
    boost::uuids::detail::sha1::digest_type words;
    sha.get_digest(words);
    return fmt::format("{:08x}", fmt::join(words, ""));
  }
  static CubinCache store() {
    // Next to this process's own folder, which does not outlive it (tests/main.cpp).
    const char* shared = std::getenv("FUSELINE_PASSED_KERNELS");
    return {shared != nullptr
                ? std::filesystem::path(shared)
                : std::filesystem::path(std::getenv("FUSELINE_TEST_STORE")) / "kernels-that-passed",
            Bytes(64 << 20)};
  }
  std::string key_;
};

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
    const Passed passed(*compiler_, target, source,
                        fmt::format("no spills, {}", fmt::join(instructions, ", ")));
    if (passed.before() || passed.waits()) return;
    const Compiled compiled = compiler_->compile(source, target);
    EXPECT_EQ(compiled.use.spill_bytes, 0) << source.text;
    EXPECT_EQ(compiled.log.find("C7508"), std::string::npos) << compiled.log;
    for (const std::string& instruction : instructions)
      EXPECT_THAT(compiled.ptx, testing::HasSubstr(instruction)) << source.text;
    if (!testing::Test::HasFailure()) passed.remember();
  }

  std::optional<Compiler> compiler_;
  std::set<std::string> seen_;
};

}  // namespace fuseline::test
