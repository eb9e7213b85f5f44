// 8-bit whole numbers with a scale for each token.
#include "model/activation_formats/all_activation_formats.h"

namespace fuseline {

constinit const ActivationFormat activation_formats::int8{
    .rows = {.name = "int8",
             .element = Dtype::int8,
             .scale = Dtype::fp32,
             .group = 0,
             .largest = 127,
             .about = "int8, one fp32 scale for each token",
             .source = "Xiao et al., SmoothQuant, arXiv 2211.10438: per-token dynamic activations"},
    .weights = "int8"};

}  // namespace fuseline
