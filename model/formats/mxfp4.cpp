// 4-bit floating point with scales that are powers of two.
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::mxfp4{
    .name = "mxfp4",
    .element = Dtype::e2m1,
    .scale = Dtype::e8m0,
    .group = 32,
    .power_of_two = true,
    .largest = 6,
    .about = "e2m1, one power of two for each 32 columns of a row",
    .source = "OCP Microscaling Formats (MX) Specification v1.0, section 5"};

}  // namespace fuseline
