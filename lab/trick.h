// What was handed in reaches for more than it was given: a link in place of a file, a function that
// goes around the counting. It is the student's input that is wrong, and a lecturer wants to know.
#pragma once

#include "base/error.h"

namespace fuseline::lab {

class TrickError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace fuseline::lab
