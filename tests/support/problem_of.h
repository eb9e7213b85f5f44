// What a call refuses.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace fuseline::test {

// A failure of the test where nothing is refused.
template <class Call>
InputProblem problem_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

}  // namespace fuseline::test
