// Short lists.
#pragma once

#include <algorithm>
#include <vector>

namespace fuseline {

template <class T>
bool holds(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace fuseline
