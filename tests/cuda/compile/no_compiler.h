// What tests that compile CUDA code do without a compiler.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace fuseline::cuda {

// Ends a test that compiles where there is no compiler. It is skipped where no toolkit is
// installed; where the headers of one are (FUSELINE_HAS_CUDA), a compiler that is missing is a
// failure.
inline void end_without_compiler(const MissingError& error) {
  if (FUSELINE_HAS_CUDA != 0) FAIL() << "a CUDA toolkit is installed, but: " << error.what();
  GTEST_SKIP() << error.what();
}

}  // namespace fuseline::cuda
