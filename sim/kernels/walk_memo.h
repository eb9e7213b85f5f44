// Walks through the L2, remembered: the same kernel that meets the same contents moves the same
// bytes and leaves the same contents, so it is walked once.
//
// Policies share most of their kernels, a plan that somebody changes in one place shares all but a
// few with the plan before, and constants that set times change no traffic. What is remembered is
// therefore the traffic of one phase of a kernel, under
//   the sizes, tiles and ranges that say in which order it touches which chunks,
//   and the contents that it finds,
// whatever the names of the tensors. Several remembered walks in a row need no cache: each entry
// says which contents follow from the contents before. The contents are put into a cache only
// when an unknown walk follows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_wave.h"
#include "sim/memory/l2_cache.h"
#include "sim/memory/l2_contents.h"

namespace fuseline {

// Waves of a very large GEMM that are not walked: they move what others move on average.
struct RepeatedWaves {
  UnitRange waves, like;
};

// What a walk moved.
struct WalkTraffic {
  std::vector<GemmWave> waves;  // of a GEMM
  HbmTraffic hbm;               // of any other kernel, and of what follows a GEMM
  Bytes l2;                     // of what follows a GEMM
  double most_missed = 0;       // of streams: the largest share of one that L2 did not hold
  std::optional<RepeatedWaves> repeated{};
};
using Walk = std::function<WalkTraffic(L2Cache&)>;

// Everything that decides what a walk touches, in order, but for the names of its tensors.
class WalkKey {
 public:
  enum class Kind : std::uint8_t { gemm, streams, attention };
  void kind(Kind kind) { words_.push_back(static_cast<std::uint64_t>(kind)); }
  void number(std::int64_t value) { words_.push_back(static_cast<std::uint64_t>(value)); }
  void tensor(std::uint32_t id);
  void matrix(const CachedMatrix& m);

  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
  [[nodiscard]] const std::vector<std::uint32_t>& tensors() const { return tensors_; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> tensors_;  // all that it touches, in the order of first mention
};

// The remembered walks. Several threads may use it at once. It holds about `budget` bytes at most:
// when the newer half is full, the older half is forgotten. An entry that is used again counts as
// new.
class WalkMemo {
 public:
  explicit WalkMemo(std::size_t budget = kUsualBudget) : budget_(budget) {}
  static constexpr std::size_t kUsualBudget = std::size_t{48} << 20;

  using Contents = std::shared_ptr<const L2Contents>;
  struct Entry {
    WalkTraffic traffic;
    std::vector<Bytes> missed;  // by tensor of the key
    Contents before, after;     // after: none where they were not certain, or no value
    // By tensor number in `after`: its number before, or the count of those plus its place in the
    // key.
    std::vector<std::uint32_t> tensors_after;
  };
  using Words = std::vector<std::uint64_t>;

  [[nodiscard]] std::shared_ptr<const Entry> find(const Words& key);
  void add(const Words& key, Entry entry);
  // The same contents, once.
  Contents one_of(L2Contents contents);

  struct Use {
    std::size_t found = 0, added = 0;  // entries
    std::size_t memory = 0;            // bytes held, about
  };
  [[nodiscard]] Use use() const;
  void forget();

  // The one that all predictions of the process share.
  static WalkMemo& shared();

 private:
  struct Hash {
    std::size_t operator()(const Words& words) const;
  };
  struct Half {
    std::unordered_map<Words, std::shared_ptr<const Entry>, Hash> entries;
    std::unordered_multimap<std::uint64_t, Contents> contents;  // by hash
    std::size_t memory = 0;
  };
  Contents keep(const Contents& contents);
  void keep(const Words& key, const std::shared_ptr<const Entry>& entry);
  void make_room();

  const std::size_t budget_;
  mutable std::mutex mutex_;
  Half newer_, older_;
  std::size_t found_ = 0, added_ = 0;
};

// One least recently used cache in a walk over a plan.
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
