// Random weights in a number format, as a quantiser would leave them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/formats/stored_weight.h"
#include "sim/executor/parallel.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

struct QuantisedWeight {
  std::shared_ptr<const Storage> codes;
  std::vector<std::shared_ptr<const Storage>> beside;  // in the order of StoredWeight::beside
};

// Rounds `matrices` matrices [N, K] that lie behind each other to the nearest codes: the largest
// magnitude of a group becomes the format's largest number, or with zero points its range becomes
// that of the codes. `fill` writes row n of all of them, K numbers; any thread calls it, in any
// order.
QuantisedWeight quantise_weight(const StoredWeight& weight, std::int64_t matrices, std::int64_t N,
                                std::int64_t K,
                                const std::function<void(std::int64_t n, float* row)>& fill,
                                const Workers& workers);

}  // namespace fuseline::executor
