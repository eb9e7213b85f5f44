// The gradient of programs of one's own, as programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/programs/program_file.h"

namespace fuseline {

// The programs that compute the gradients of the file's inputs and weights from those of its
// outputs: d_h for an output h is an input, d_w for a weight w an output. Tensors that the forward
// pass stored and that are needed again are inputs of their own names. Where derivatives of an
// epilogue need its product, they load what the forward pass stored of it if that is enough, and
// otherwise compute the product again. `of`: names of inputs and weights whose gradients
// are wanted; empty: all whose numbers have a floating point type.
// MissingError: a line that states no gradient. InputError: a name of `of` that is no input or
// weight (with the nearest); no wanted tensor reaches an output; a file with operators, whose
// gradient a plan for training has.
Plan gradient_of(const ProgramFile& file, const std::vector<std::string>& of = {});

// The same with what belongs together. Tensors of the forward pass have their own names, which no
// gradient has.
struct ProgramGradient {
  Plan plan;
  // The forward programs: as they are, or with a store more for each product whose epilogue the
  // gradient would otherwise compute again.
  Plan forward;
  bool keeps = false;                                   // whether there are such stores
  std::vector<std::pair<std::string, std::string>> of;  // a gradient's tensor, and its forward one
};
enum class Products { again, kept };
ProgramGradient program_gradient(const ProgramFile& file, const std::vector<std::string>& of = {},
                                 Products products = Products::again);

// Either of its plans as a file of programs alone, which a person may change.
std::string gradient_text(const Plan& gradient, const std::string& target);

}  // namespace fuseline
