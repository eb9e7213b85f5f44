// In how many bits the rows that meet a weight in codes are multiplied, and by what they are
// scaled: a number format of activations, said once in its own file beside this one. Nothing else
// lists them.
//   number = code × scale, the scale being found anew in every run from the numbers themselves
#pragma once

#include "model/formats/weight_format.h"

namespace fuseline {

struct ActivationFormat {
  WeightFormat rows;  // name as --activations takes it, codes, scales; one row for each scale
  Fact<const char*> weights;  // the format of the weights that such rows are multiplied by
};

}  // namespace fuseline
