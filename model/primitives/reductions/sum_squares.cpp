// The sum of squares.
#include "model/primitives/all_reductions.h"
#include "model/primitives/running_sums.h"

namespace fuseline {

constinit const ReduceFunction reductions::sum_squares{
    .name = "sum_squares",
    .reducer = "SumSquares",
    .of_numbers =
        [](const float* values, std::int64_t count) {
          return running_sum(values, count, [](float v) { return v * v; });
        },
    .joined = added};

}  // namespace fuseline
