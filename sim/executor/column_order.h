// Where a plan keeps its tensors' rows and columns: weights whose pairs were made adjacent put
// their products' columns, and the gradients of both, in another order than the block's own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/plan.h"

namespace fuseline::executor {

// Row i of the plan's tensor is row rows[i] of the block's; the same for columns. Empty: as it is.
struct TensorOrder {
  std::vector<std::int64_t> rows{};
  std::vector<std::int64_t> cols{};
};

// Tensors of the plan's graph whose elements lie elsewhere than the block's. Given tensors and
// results as the preparation says, intermediates as their operators hand it on.
std::map<TensorId, TensorOrder> tensor_orders(const Plan& plan);

}  // namespace fuseline::executor
