// 8-bit floating point with a scale for each token.
#include "model/activation_formats/all_activation_formats.h"

namespace fuseline {

constinit const ActivationFormat activation_formats::fp8{
    .rows = {.name = "fp8",
             .element = Dtype::e4m3,
             .scale = Dtype::fp32,
             .group = 0,
             .largest = 448,
             .about = "e4m3, one fp32 scale for each token",
             .source = "vLLM, FP8 W8A8: per-token dynamic activations, per-channel weights"},
    .weights = "fp8"};

}  // namespace fuseline
