// One least recently used cache in a walk over a plan: known walks are taken from the memo.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.h"
#include "sim/kernels/walk_key.h"
#include "sim/kernels/walk_memo.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

class RememberingCache {
 public:
  // Without a memo everything is walked.
  RememberingCache(Bytes capacity, WalkMemo* memo);

  // `key` must say all that decides what `walk` touches, and name all tensors that it touches.
  WalkTraffic walk(const WalkKey& key, const Walk& walk);
  // The same of a walk that may be taken in parts, one behind the other: each is remembered too.
  // `parts` is asked for only where the whole is not known.
  WalkTraffic walk(const WalkKey& key, const std::function<std::vector<Walk>()>& parts);
  // Afterwards it holds what any L2 holds after `walk`, whatever it held before. False, and it is
  // empty: that depends on what it held before.
  bool refill(const WalkKey& key, const Walk& walk);

  Bytes take_missed(std::uint32_t tensor);
  void forget_missed() {
    missed_.clear();
    cache_.forget_missed();
  }
  // As new, and empty.
  void clear() { *this = RememberingCache(capacity(), memo_); }
  // Only without a memo: what is remembered is not walked, and so there is nothing to see.
  const L2Cache& watch(L2Watcher* watcher);
  [[nodiscard]] bool remembers() const { return memo_ != nullptr; }
  [[nodiscard]] Bytes capacity() const { return cache_.capacity(); }
  [[nodiscard]] Bytes resident(std::uint32_t tensor) { return cache().resident(tensor); }
  [[nodiscard]] Bytes dirty(std::uint32_t tensor) { return cache().dirty(tensor); }

 private:
  L2Cache& cache();
  WalkMemo::Words words_of(const WalkKey& key, std::uint64_t kind) const;
  // The entry of a plain walk that was made before from these contents, which is followed; `words`
  // are its key afterwards, unless the contents have no value.
  std::shared_ptr<const WalkMemo::Entry> follow_known(const WalkKey& key, WalkMemo::Words& words);
  void follow(const WalkKey& key, const WalkMemo::Entry& entry);
  WalkMemo::Entry describe(const WalkKey& key, WalkTraffic traffic);
  static std::vector<std::uint32_t> numbers_after(const WalkKey& key,
                                                  const std::vector<std::uint32_t>& before,
                                                  const std::vector<std::uint32_t>& after);
  [[nodiscard]] Bytes missed(std::uint32_t tensor) const {
    return tensor < missed_.size() ? missed_[tensor] : Bytes();
  }
  void count_missed(std::uint32_t tensor, Bytes bytes);

  WalkMemo* memo_;
  L2Cache cache_;
  bool cache_is_current_ = true;
  // The contents and the tensor of each of their numbers; none where they are known to cache_
  // alone.
  WalkMemo::Contents contents_;
  std::vector<std::uint32_t> tensors_;
  std::vector<Bytes> missed_;  // by tensor
};

}  // namespace fuseline
