#include "sim/executor/partial_sums.h"

#include <utility>

#include "base/error.h"

namespace fuseline::executor {

void PartialSums::add(std::size_t primitive, Partials partials, const PartialRule& rule) {
  const Key key{primitive, partials.block, partials.across, partials.part};
  const std::scoped_lock lock(mutex_);
  FUSELINE_ASSERT(parts_.emplace(key, Part{std::move(partials), rule}).second, "a tile ran twice");
}

void PartialSums::finish(TileMemory& memory) {
  std::map<Key, Part> parts = std::exchange(parts_, {});
  for (auto it = parts.begin(); it != parts.end();) {
    const Key first = it->first;
    const PartialRule& rule = it->second.rule;
    Partials joined = std::move(it->second.partials);
    for (++it; it != parts.end(); ++it) {
      const Key& next = it->first;
      if (next.primitive != first.primitive || next.block != first.block ||
          next.across != first.across)
        break;
      FUSELINE_ASSERT(it->second.partials.numbers.size() == joined.numbers.size(),
                      "parts of different sizes");
      rule.join(joined.numbers, it->second.partials.numbers);
    }
    rule.store(memory, joined);
  }
}

}  // namespace fuseline::executor
