// 8-bit floating point, and nothing beside it.
#include "model/cache_formats/all_cache_formats.h"

namespace fuseline {

constinit const CacheFormat cache_formats::fp8{
    .name = "fp8",
    .element = Dtype::e4m3,
    .scale_of_heads = false,
    .largest = 448,
    .about = "e4m3, scaled by one number of the tensor, which is 1; beyond 448 it saturates",
    .source = "vLLM, Quantized KV Cache: kv_cache_dtype fp8 without calibration has scale 1"};

}  // namespace fuseline
