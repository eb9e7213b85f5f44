// Two numbers, the sum and the sum of squares: the moments of LayerNorm.
#include "model/primitives/all_reductions.h"
#include "model/primitives/running_sums.h"

namespace fuseline {

constinit const ReduceFunction reductions::sum_and_squares{
    .name = "sum",
    .reducer = "Sum",
    .of_numbers =
        [](const float* values, std::int64_t count) {
          return reductions::sum.of_numbers.value(values, count);
        },
    .joined = added,
    .also = &reductions::sum_squares};

}  // namespace fuseline
