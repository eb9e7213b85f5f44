// The largest value.
#include <limits>

#include "model/primitives/all_reductions.h"
#include "model/primitives/running_sums.h"

namespace fuseline {

constinit const ReduceFunction reductions::max{
    .name = "max",
    .reducer = "Max",
    .of_numbers =
        [](const float* values, std::int64_t count) {
          return running(values, count, -std::numeric_limits<float>::infinity(), larger, larger);
        },
    .joined = larger};

}  // namespace fuseline
