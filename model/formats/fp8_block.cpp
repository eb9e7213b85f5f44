// 8-bit floating point with a scale for each square block, as DeepSeek-V3 and Qwen3 are published.
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::fp8_block{
    .name = "fp8-block",
    .element = Dtype::e4m3,
    .scale = Dtype::fp32,
    .group = 128,
    .group_rows = 128,
    .largest = 448,
    .about = "e4m3, one fp32 scale for each block of 128 x 128",
    .source = "DeepSeek-V3 Technical Report, arXiv 2412.19437, section 3.3"};

}  // namespace fuseline
