// 4-bit floating point with two levels of scales, as Blackwell's tensor cores take it.
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::nvfp4{
    .name = "nvfp4",
    .element = Dtype::e2m1,
    .scale = Dtype::e4m3,
    .group = 16,
    .tensor_scale = true,
    .largest = 6,
    .about = "e2m1, one e4m3 scale for each 16 columns of a row and one fp32 scale of the tensor",
    .source = "NVIDIA cuDNN 9 documentation, block scaling: NVFP4"};

}  // namespace fuseline
