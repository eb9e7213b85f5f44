// The L2 of one walk over a plan, as its sets are loaded.
//
// An L2 finds a line in one of its sets, and each set gives up its least recently used line when it
// is full. Addresses are spread over the sets as if by chance, so some sets get more lines than
// others: what is asked for after so many other bytes is gone from a full set and still there in
// an empty one. The L2 is therefore simulated as three parts of a third of all lines each. Every
// one is a least recently used cache that behaves like one of (1 - s), 1 and (1 + s) times the L2's
// capacity, and traffic and contents are the means of the three.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"
#include "sim/kernels/remembering_cache.h"
#include "sim/kernels/walk_key.h"
#include "sim/kernels/walk_memo.h"

namespace fuseline {

class RememberingL2 {
 public:
  // `spread`: s, from 0 (all sets are alike, one part is simulated) to below 1. Without a memo
  // everything is walked.
  RememberingL2(Bytes capacity, double spread, WalkMemo* memo);

  // What each byte costs on average. `key` as in RememberingCache; `walk` runs once for each part.
  WalkTraffic walk(const WalkKey& key, const Walk& walk);
  // The same of a walk in parts, which depend on the capacity of the cache that they go through.
  WalkTraffic walk(const WalkKey& key, const std::function<std::vector<Walk>(Bytes)>& parts);
  // As RememberingCache's, of all parts: false, and all are empty, where one depends on what it
  // held before.
  bool refill(const WalkKey& key, const Walk& walk);

  Bytes take_missed(std::uint32_t tensor);
  void forget_missed();
  // All parts, the one of the mean capacity first.
  std::vector<const L2Cache*> watch(L2Watcher* watcher);
  [[nodiscard]] bool remembers() const { return parts_.front().remembers(); }
  [[nodiscard]] Bytes capacity() const { return parts_[parts_.size() / 2].capacity(); }
  [[nodiscard]] Bytes resident(std::uint32_t tensor);
  [[nodiscard]] Bytes dirty(std::uint32_t tensor);

 private:
  template <class OfPart>
  Bytes mean(OfPart of_part);

  std::vector<RememberingCache> parts_;
};

// The mean of what equal walks moved through caches of different capacities.
WalkTraffic mean_of(const std::vector<WalkTraffic>& walks);

}  // namespace fuseline
