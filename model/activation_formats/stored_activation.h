// Rows in a number format of activations. They are a matrix in codes as weights are: [M, K] with a
// scale for each row, or for each group of its columns.
#pragma once

#include <string>
#include <vector>

#include "model/formats/stored_weight.h"

namespace fuseline {

struct ActivationFormat;  // model/activation_formats/activation_format.h

// "fp8", or the name of the workload's type for no format (`plain`: "bf16"). InputError with
// `field` otherwise, with the nearest name.
StoredWeight parse_stored_activation(const std::string& text, const std::string& field,
                                     const std::string& plain);

// The name of the weights' format that these rows are multiplied by. Asserts that there is one.
std::string weights_for(const StoredWeight& activation);

// The names of all formats, in alphabetical order.
std::vector<std::string> activation_format_names();
const std::vector<const ActivationFormat*>& all_activation_formats();

}  // namespace fuseline
