// The sum.
#include "model/primitives/all_reductions.h"
#include "model/primitives/running_sums.h"

namespace fuseline {

constinit const ReduceFunction reductions::sum{.name = "sum",
                                               .reducer = "Sum",
                                               .of_numbers =
                                                   [](const float* values, std::int64_t count) {
                                                     return running_sum(values, count,
                                                                        [](float v) { return v; });
                                                   },
                                               .joined = added};

}  // namespace fuseline
