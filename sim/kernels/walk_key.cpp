#include "sim/kernels/walk_key.h"

#include <algorithm>

namespace fuseline {

void WalkKey::tensor(std::uint32_t id) {
  const auto found = std::find(tensors_.begin(), tensors_.end(), id);
  words_.push_back(static_cast<std::uint64_t>(found - tensors_.begin()));
  if (found == tensors_.end()) tensors_.push_back(id);
}

void WalkKey::matrix(const CachedMatrix& m) {
  tensor(m.tensor);
  number(m.rows);
  number(m.cols);
  number(m.element.bits());
  number(m.at.begin);
  number(m.at.run);
  number(m.at.step);
}

}  // namespace fuseline
