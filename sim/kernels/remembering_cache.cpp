#include "sim/kernels/remembering_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

namespace fuseline {
namespace {

constexpr std::uint64_t kPlainWalk = 0;
constexpr std::uint64_t kRefill = 1;
constexpr std::uint64_t kNotThere = ~std::uint64_t{0};

}  // namespace

RememberingCache::RememberingCache(Bytes capacity, WalkMemo* memo) : memo_(memo), cache_(capacity) {
  if (memo_ != nullptr) contents_ = memo_->one_of(*cache_.contents(tensors_));
}

const L2Cache& RememberingCache::watch(L2Watcher* watcher) {
  FUSELINE_ASSERT(memo_ == nullptr, "a walk that is remembered cannot be watched");
  cache_.watch(watcher);
  return cache_;
}

L2Cache& RememberingCache::cache() {
  if (!cache_is_current_) cache_.restore(*contents_, tensors_);
  cache_is_current_ = true;
  return cache_;
}

// A refill depends on nothing that was there.
WalkMemo::Words RememberingCache::words_of(const WalkKey& key, std::uint64_t kind) const {
  WalkMemo::Words words;
  words.reserve(3 + key.words().size() + key.tensors().size());
  words.push_back(kind);
  words.push_back(static_cast<std::uint64_t>(capacity().value()));
  words.push_back(key.words().size());
  words.insert(words.end(), key.words().begin(), key.words().end());
  if (kind == kRefill) return words;
  words.push_back(reinterpret_cast<std::uintptr_t>(contents_.get()));
  for (const std::uint32_t tensor : key.tensors()) {
    const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
    words.push_back(found == tensors_.end() ? kNotThere
                                            : static_cast<std::uint64_t>(found - tensors_.begin()));
  }
  return words;
}

std::shared_ptr<const WalkMemo::Entry> RememberingCache::follow_known(const WalkKey& key,
                                                                      WalkMemo::Words& words) {
  if (!contents_) return nullptr;
  words = words_of(key, kPlainWalk);
  std::shared_ptr<const WalkMemo::Entry> known = memo_->find(words);
  if (known) follow(key, *known);
  return known;
}

WalkTraffic RememberingCache::walk(const WalkKey& key, const Walk& walk) {
  if (memo_ == nullptr) return walk(cache_);
  WalkMemo::Words words;
  if (const auto known = follow_known(key, words)) return known->traffic;
  WalkTraffic traffic = walk(cache());
  const WalkMemo::Contents before = contents_;
  WalkMemo::Entry entry = describe(key, traffic);
  entry.before = before;
  if (before && entry.after) memo_->add(words, std::move(entry));
  return traffic;
}

WalkTraffic RememberingCache::walk(const WalkKey& key,
                                   const std::function<std::vector<Walk>()>& parts) {
  FUSELINE_ASSERT(memo_ != nullptr, "parts are for what is remembered");
  const WalkMemo::Contents before = contents_;
  WalkMemo::Words words;
  if (const auto known = follow_known(key, words)) return known->traffic;
  const std::vector<Walk> all_parts = parts();
  if (all_parts.size() == 1) return walk(key, all_parts.front());
  const std::vector<std::uint32_t> tensors_before = tensors_;
  WalkMemo::Entry entry;
  entry.before = before;
  for (const std::uint32_t tensor : key.tensors()) entry.missed.push_back(missed(tensor));
  std::int64_t number = 0;
  for (const Walk& part : all_parts) {
    WalkKey part_key = key;
    part_key.number(number++);
    WalkTraffic traffic = walk(part_key, part);
    std::vector<GemmWave> waves = std::move(entry.traffic.waves);
    waves.insert(waves.end(), traffic.waves.begin(), traffic.waves.end());
    entry.traffic = std::move(traffic);  // but for waves, the last part has what the whole has
    entry.traffic.waves = std::move(waves);
  }
  WalkTraffic all = entry.traffic;
  if (!before || !contents_) return all;
  for (std::size_t i = 0; i < entry.missed.size(); ++i)
    entry.missed[i] = missed(key.tensors()[i]) - entry.missed[i];
  entry.after = contents_;
  entry.tensors_after = numbers_after(key, tensors_before, tensors_);
  memo_->add(words, std::move(entry));
  return all;
}

bool RememberingCache::refill(const WalkKey& key, const Walk& walk) {
  contents_ = nullptr;
  tensors_.clear();
  WalkMemo::Words words;
  if (memo_ != nullptr) {
    words = words_of(key, kRefill);
    if (const auto known = memo_->find(words)) {
      if (known->after) {
        follow(key, *known);
        return true;
      }
      clear();
      return false;
    }
  }
  cache_.clear();
  cache_is_current_ = true;
  cache_.assume_used_before();
  walk(cache_);
  cache_.take_traffic();
  const bool certain = cache_.contents_are_certain();
  if (memo_ != nullptr) {
    WalkMemo::Entry entry = describe(key, {});
    if (entry.after || !certain) memo_->add(words, std::move(entry));
  }
  if (!certain) clear();
  return certain;
}

// Goes from the contents before an entry's walk to those after it.
void RememberingCache::follow(const WalkKey& key, const WalkMemo::Entry& entry) {
  for (std::size_t i = 0; i < entry.missed.size(); ++i)
    count_missed(key.tensors()[i], entry.missed[i]);
  std::vector<std::uint32_t> after;
  after.reserve(entry.tensors_after.size());
  for (const std::uint32_t from : entry.tensors_after) {
    after.push_back(from < tensors_.size() ? tensors_[from]
                                           : key.tensors()[from - tensors_.size()]);
  }
  tensors_ = std::move(after);
  contents_ = entry.after;
  cache_is_current_ = false;
}

// The entry of a walk that has just ended; moves on to the contents after it.
WalkMemo::Entry RememberingCache::describe(const WalkKey& key, WalkTraffic traffic) {
  WalkMemo::Entry entry;
  entry.traffic = std::move(traffic);
  for (const std::uint32_t tensor : key.tensors()) {
    entry.missed.push_back(cache_.take_missed(tensor));
    count_missed(tensor, entry.missed.back());
  }
  std::vector<std::uint32_t> after;
  std::optional<L2Contents> contents = cache_.contents(after);
  contents_ = contents ? memo_->one_of(std::move(*contents)) : nullptr;
  if (contents_) {
    entry.after = contents_;
    entry.tensors_after = numbers_after(key, tensors_, after);
  }
  tensors_ = contents_ ? std::move(after) : std::vector<std::uint32_t>{};
  return entry;
}

// Of each tensor of `after` its place in `before`, or else in the key, behind those.
std::vector<std::uint32_t> RememberingCache::numbers_after(
    const WalkKey& key, const std::vector<std::uint32_t>& before,
    const std::vector<std::uint32_t>& after) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(after.size());
  for (const std::uint32_t tensor : after) {
    const auto there = std::find(before.begin(), before.end(), tensor);
    const auto own = std::find(key.tensors().begin(), key.tensors().end(), tensor);
    numbers.push_back(static_cast<std::uint32_t>(
        there != before.end() ? there - before.begin()
                              : std::ssize(before) + (own - key.tensors().begin())));
  }
  return numbers;
}

void RememberingCache::count_missed(std::uint32_t tensor, Bytes bytes) {
  if (bytes == Bytes()) return;
  if (tensor >= missed_.size()) missed_.resize(tensor + 1);
  missed_[tensor] += bytes;
}

Bytes RememberingCache::take_missed(std::uint32_t tensor) {
  if (memo_ == nullptr) return cache_.take_missed(tensor);
  return tensor < missed_.size() ? std::exchange(missed_[tensor], Bytes()) : Bytes();
}

}  // namespace fuseline
