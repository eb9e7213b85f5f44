// 4-bit whole numbers, symmetric, as GPTQ stores them with "sym".
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::int4{
    .name = "int4",
    .element = Dtype::int4,
    .scale = Dtype::fp16,
    .group = 128,
    .any_group = true,
    .largest = 7,
    .about = "int4, one fp16 scale for each group of 128 columns of a row",
    .source = "Frantar et al., GPTQ, arXiv 2210.17323, section 4: groups of 128"};

}  // namespace fuseline
