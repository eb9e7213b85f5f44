// 8-bit whole numbers with a scale for each head of each token.
#include "model/cache_formats/all_cache_formats.h"

namespace fuseline {

constinit const CacheFormat cache_formats::int8{
    .name = "int8",
    .element = Dtype::int8,
    .scale_of_heads = true,
    .largest = 127,
    .about = "int8, one fp32 scale for each head of each token",
    .source = "LMDeploy, INT4/INT8 KV Cache: by head and token, there with a zero point too"};

}  // namespace fuseline
