// What a test of kernels needs and a machine may lack. Each returns why it is not here; empty: it
// is.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/run/known_gpu.h"

namespace fuseline::test {

inline std::string why_no_compiler() {
  try {
    const cuda::Compiler compiler;
    return "";
  } catch (const MissingError& error) {
    return error.what();
  }
}

inline std::string why_no_gpu(Gpu& gpu) {
  try {
    gpu = cuda::known_gpu(cuda::device_here());
    return "";
  } catch (const MissingError& error) {
    return error.what();
  }
}

// Its tests are skipped, with the reason, where there is no compiler.
class NeedsCompiler : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  }
};

}  // namespace fuseline::test
