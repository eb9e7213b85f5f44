#include "sim/executor/partial_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

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

void store_partials(const OnlineLogSumExp& reduce, std::int64_t block, std::int64_t across,
                    const std::vector<float>& numbers, Port& port) {
  const std::int64_t blocks = reduce.partial.cols / 3;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t row = across + static_cast<std::int64_t>(i / 3);
    const std::int64_t third = static_cast<std::int64_t>(i % 3);
    port.store(reduce.partial, row, third * blocks + block, 1, &numbers[i]);
  }
}

namespace {

void join(const TileReduce& reduce, const std::vector<float>& part, std::vector<float>& joined) {
  for (std::size_t i = 0; i < joined.size(); ++i)
    joined[i] = reduce.fn == ReduceFn::max ? std::max(joined[i], part[i]) : joined[i] + part[i];
}

// Sums of exponentials above different maxima; only one part has the target.
void join(const OnlineLogSumExp&, const std::vector<float>& part, std::vector<float>& joined) {
  for (std::size_t i = 0; i < joined.size(); i += 3) {
    const float top = std::max(joined[i], part[i]);
    joined[i + 1] =
        joined[i + 1] * std::exp(joined[i] - top) + part[i + 1] * std::exp(part[i] - top);
    joined[i] = top;
    joined[i + 2] += part[i + 2];
  }
}

}  // namespace

void PartialSums::add(const Key& key, std::vector<float> numbers) {
  const std::scoped_lock lock(mutex_);
  FUSELINE_ASSERT(parts_.emplace(key, std::move(numbers)).second, "a tile ran twice");
}

void PartialSums::finish(const std::vector<Primitive>& primitives, Port& port) {
  const std::map<Key, std::vector<float>> parts = std::exchange(parts_, {});
  for (auto it = parts.begin(); it != parts.end();) {
    const Key first = it->first;
    const Primitive& reduce = primitives.at(first.primitive);
    const auto* online = std::get_if<OnlineLogSumExp>(&reduce);
    std::vector<float> joined = it->second;
    for (++it; it != parts.end(); ++it) {
      const Key& next = it->first;
      if (next.primitive != first.primitive || next.block != first.block ||
          next.across != first.across)
        break;
      FUSELINE_ASSERT(it->second.size() == joined.size(), "parts of different sizes");
      if (online != nullptr)
        join(*online, it->second, joined);
      else
        join(std::get<TileReduce>(reduce), it->second, joined);
    }
    if (online != nullptr)
      store_partials(*online, first.block, first.across, joined, port);
    else
      store_partials(std::get<TileReduce>(reduce), first.block, first.across, joined, port);
  }
}

}  // namespace fuseline::executor
