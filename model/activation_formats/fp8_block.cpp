// 8-bit floating point with a scale for each 128 columns of a token, as DeepSeek-V3 computes.
#include "model/activation_formats/all_activation_formats.h"

namespace fuseline {

constinit const ActivationFormat activation_formats::fp8_block{
    .rows = {.name = "fp8-block",
             .element = Dtype::e4m3,
             .scale = Dtype::fp32,
             .group = 128,
             .largest = 448,
             .about = "e4m3, one fp32 scale for each 128 columns of a token",
             .source = "DeepSeek-V3 Technical Report, arXiv 2412.19437, section 3.3"},
    .weights = "fp8-block"};

}  // namespace fuseline
