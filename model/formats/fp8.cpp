// 8-bit floating point with a scale for each output channel.
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::fp8{
    .name = "fp8",
    .element = Dtype::e4m3,
    .scale = Dtype::fp32,
    .group = 0,
    .largest = 448,
    .about = "e4m3, one fp32 scale for each output channel",
    .source = "Micikevicius et al., FP8 Formats for Deep Learning, arXiv 2209.05433"};

}  // namespace fuseline
