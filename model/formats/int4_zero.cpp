// 4-bit whole numbers with zero points, as AWQ stores them. A zero point takes a byte here, where
// AWQ packs two in one: with groups of 128 that is 0.7 % of the weights' bytes.
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::int4_zero{
    .name = "int4-zero",
    .element = Dtype::int4,
    .scale = Dtype::fp16,
    .group = 128,
    .any_group = true,
    .zero_points = true,
    .largest = 7,
    .about = "int4, one fp16 scale and one zero point for each group of 128 columns of a row",
    .source = "Lin et al., AWQ, arXiv 2306.00978: asymmetric, groups of 128"};

}  // namespace fuseline
