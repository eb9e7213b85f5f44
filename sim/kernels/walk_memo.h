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

}  // namespace fuseline
