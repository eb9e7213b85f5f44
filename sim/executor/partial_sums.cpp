#include "sim/executor/partial_sums.h"

#include <algorithm>
#include <utility>

#include "model/error.h"

namespace fuseline::executor {

std::int64_t numbers_of(const TileReduce& reduce) {
  return reduce.fn == ReduceFn::sum_and_squares || reduce.second >= 0 ? 2 : 1;
}

void store_partials(const TileReduce& reduce, std::int64_t block, std::int64_t across,
                    const std::vector<float>& numbers, Port& port) {
  const std::int64_t each = numbers_of(reduce);
  const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / each;
  for (std::int64_t i = 0; i < count; ++i)
    port.store(reduce.partial, across + i, block * each, each, numbers.data() + i * each);
}

void PartialSums::add(const Key& key, std::vector<float> numbers) {
  const std::scoped_lock lock(mutex_);
  FUSELINE_ASSERT(parts_.emplace(key, std::move(numbers)).second, "a tile ran twice");
}

void PartialSums::finish(const std::vector<Primitive>& primitives, Port& port) {
  const std::map<Key, std::vector<float>> parts = std::exchange(parts_, {});
  for (auto it = parts.begin(); it != parts.end();) {
    const Key first = it->first;
    const auto& reduce = std::get<TileReduce>(primitives.at(first.primitive));
    std::vector<float> joined = it->second;
    for (++it; it != parts.end(); ++it) {
      const Key& next = it->first;
      if (next.primitive != first.primitive || next.block != first.block ||
          next.across != first.across)
        break;
      FUSELINE_ASSERT(it->second.size() == joined.size(), "parts of different sizes");
      for (std::size_t i = 0; i < joined.size(); ++i)
        joined[i] = reduce.fn == ReduceFn::max ? std::max(joined[i], it->second[i])
                                               : joined[i] + it->second[i];
    }
    store_partials(reduce, first.block, first.across, joined, port);
  }
}

}  // namespace fuseline::executor
