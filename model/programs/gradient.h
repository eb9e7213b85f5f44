// The gradient of programs of one's own, as programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/programs/program_file.h"

namespace fuseline {

// The programs that compute the gradients of the file's inputs and weights from those of its
// outputs: d_h for an output h is an input, d_w for a weight w an output. Tensors that the forward
// pass stored and that are needed again are inputs of their own names. An epilogue's product is
// computed again where its derivatives need it. `of`: names of inputs and weights whose gradients
// are wanted; empty: all whose numbers have a floating point type.
// MissingError: a line that states no gradient. InputError: a name of `of` that is no input or
// weight (with the nearest); no wanted tensor reaches an output; a file with operators, whose
// gradient a plan for training has.
Plan gradient_of(const ProgramFile& file, const std::vector<std::string>& of = {});

// The same with what belongs together. Tensors of the forward pass have their own names, which no
// gradient has.
struct ProgramGradient {
  Plan plan;
  std::vector<std::pair<std::string, std::string>> of;  // a gradient's tensor, and its forward one
};
ProgramGradient program_gradient(const ProgramFile& file, const std::vector<std::string>& of = {});

// As a file of programs alone, which a person may change.
std::string gradient_text(const Plan& gradient, const std::string& target);

}  // namespace fuseline
