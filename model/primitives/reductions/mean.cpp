// The mean of a whole row.
#include "model/primitives/all_reductions.h"
#include "model/primitives/running_sums.h"

namespace fuseline {

constinit const ReduceFunction reductions::mean{
    .name = "mean",
    .reducer = "Sum",
    .of_numbers =
        [](const float* values, std::int64_t count) {
          return reductions::sum.of_numbers.value(values, count) / static_cast<float>(count);
        },
    .joined = added,
    .divided = true};

}  // namespace fuseline
