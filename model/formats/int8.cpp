// 8-bit whole numbers with a scale for each output channel.
#include "model/formats/all_weight_formats.h"

namespace fuseline {

constinit const WeightFormat weight_formats::int8{
    .name = "int8",
    .element = Dtype::int8,
    .scale = Dtype::bf16,
    .group = 0,
    .any_group = true,
    .largest = 127,
    .about = "int8, one bf16 scale for each output channel, or for each group",
    .source = "Dettmers et al., LLM.int8(), arXiv 2208.07339: symmetric, by row"};

}  // namespace fuseline
